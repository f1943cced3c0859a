package main

// An image from scratch has no time zone data, and neither may a server.
import _ "time/tzdata"
