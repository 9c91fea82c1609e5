// Package remote fetches what an app folder takes from elsewhere: files at
// http(s) addresses, and files of git repositories, which git itself fetches.
//
// What is fetched is named by a folder, or by a file that was fetched before,
// so nothing is trusted: addresses are checked by their text
// ([appconfig.ParseAddress]), answers are bounded in size and time, redirects
// may not leave HTTP nor give up TLS, nothing of a repository is checked out or
// run, and a path or a symlink may not leave its repository. What an address
// means for an app is decided in appconfig; nothing is kept here.
package remote
