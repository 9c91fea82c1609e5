echo "the stove is on"
