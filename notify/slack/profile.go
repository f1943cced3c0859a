package slack

import (
	"encoding/json"
	"fmt"
)

// Member is what Slack knows about a user.
type Member struct {
	// Email is the address that Slack has verified for a member of the workspace Team. It is empty
	// for guests, programs and people of other workspaces, because others enter their addresses,
	// and if the app may not see addresses.
	Email, Team string
}

// ReadMember reads an answer of the method users.info. If the app may not see users, the member is
// empty, which is no error. Other refusals are errors.
func ReadMember(body []byte) (Member, error) {
	var answer struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
		User  struct {
			Team            string `json:"team_id"`
			Deleted         bool   `json:"deleted"`
			Bot             bool   `json:"is_bot"`
			Restricted      bool   `json:"is_restricted"`
			UltraRestricted bool   `json:"is_ultra_restricted"`
			Stranger        bool   `json:"is_stranger"`
			// Absent means confirmed.
			Confirmed *bool `json:"is_email_confirmed"`
			Profile   struct {
				Email string `json:"email"`
			} `json:"profile"`
		} `json:"user"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return Member{}, fmt.Errorf("read user: %w", err)
	}
	u := answer.User
	switch {
	case !answer.OK && (answer.Error == "missing_scope" || answer.Error == "user_not_visible"):
		return Member{}, nil
	case !answer.OK:
		return Member{}, fmt.Errorf("read user: %s", Plain(line(answer.Error), maxWord))
	case u.Deleted, u.Bot, u.Restricted, u.UltraRestricted, u.Stranger, u.Confirmed != nil && !*u.Confirmed:
		return Member{Team: u.Team}, nil
	}
	return Member{Email: u.Profile.Email, Team: u.Team}, nil
}
