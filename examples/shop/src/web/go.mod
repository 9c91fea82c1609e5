// The shop is an app of its own: it is no part of Berth's workspace.
module github.com/berth-dev/berth/examples/shop/src/web

go 1.26.0
