package postgres

// The statements of the inbox, for the test that looks at their plans.
var (
	Listing = (*Inbox).listing
	Walking = (*Inbox).walking
	Folding = (*Inbox).folding
)
