exports.a = 1
