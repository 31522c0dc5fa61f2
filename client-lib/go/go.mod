// The path is a placeholder beside the project's contact: "go get" finds nothing there. docs/GO.md says how to use the module.
module lockbroker.invalid/go

go 1.19
