echo here
