module lockbroker.invalid/go/tests

go 1.19

require lockbroker.invalid/go v0.0.0

replace lockbroker.invalid/go => ../../../client-lib/go
