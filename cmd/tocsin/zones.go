package main

// An image from scratch has no time zones, and a server may have none.
import _ "time/tzdata"
