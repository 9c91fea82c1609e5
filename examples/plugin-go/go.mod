module example.com/plugin-go

go 1.26.0
