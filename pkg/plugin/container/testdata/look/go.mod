module example.com/look

go 1.26.0
