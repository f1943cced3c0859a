package postgres

// The statements of the inbox, for the test that looks at their plans.
//
//nolint:gochecknoglobals // methods, which nobody assigns to
var (
	Listing = (*Inbox).listing
	Walking = (*Inbox).walking
	Folding = (*Inbox).folding
)
