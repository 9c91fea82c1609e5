// Package action runs the scripts of an action, one after the other.
//
// A plan renders every script with its environment and pins them; an apply runs
// exactly those. A read-only action, and one at a tick of its schedule, is rendered
// and run at once.
//
// In an image of the app's (key "image") the agent starts the engine of the apply;
// what the image has as shell, bash or sh, is the one of scripts there.
//
// Each script runs in a process group of its own, under bash, whatever it calls
// its shell: apps write `#!/usr/bin/env sh` and use what bash has. What a script
// writes to the file in BERTH_ACTIONS_OUTPUT_FILEPATH (NUON_…) becomes outputs;
// what it writes to the one in BERTH_METRICS becomes numbers of the run.
//
// A command of a repository runs in in/scripts/HEX, the directory as it was built,
// which nobody may write to.
package action
