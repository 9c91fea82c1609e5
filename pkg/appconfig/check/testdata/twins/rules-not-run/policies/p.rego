package nuon
