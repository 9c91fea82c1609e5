x = "never
y = "1"
