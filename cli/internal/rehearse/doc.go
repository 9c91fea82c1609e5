// Package rehearse asks for rehearsals of apps that are written for a cloud: it
// reads the outputs that people give or have recorded, and shows what a rehearsed
// install has in the place of a cloud.
package rehearse
