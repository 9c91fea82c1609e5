package image

// StatedTerms is for the tests.
var StatedTerms = statedTerms
