#!/usr/bin/env sh
set -eu
echo "bought $AMOUNT"
