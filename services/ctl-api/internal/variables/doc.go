// Package variables keeps the variables of apps: texts of the vendor's that the
// templates of every install of the app read as .nuon.app.variables.<name>.
//
// A sensitive one is sealed to the org's key at rest and leaves this package in
// clear only for Values, whose caller seals it to an install's own key at once.
// Rows hold what is now, not what was: a value that is replaced or deleted is
// gone. apps.variables_version counts the changes.
package variables
