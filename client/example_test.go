package client_test

import (
	"context"
	"fmt"
	"os"

	"tocsin/client"
)

// A rule for every failed order, and the alerts that are open.
func Example() {
	ctx := context.Background()
	c, err := client.New(os.Getenv("TOCSIN_URL"), os.Getenv("TOCSIN_TOKEN"))
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := c.CreateRuleWithResponse(ctx, client.RuleDefinition{
		Name: "Orders refused", FireMode: client.FireModePEREXCHANGE, Severity: client.SeverityCRITICAL,
		Scope:  client.Scope{Applications: new([]string{"orders"})},
		Filter: client.Filter{ErrorMessageContains: new("refused")},
	})
	if err := client.Check(made, err); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("made", made.JSON201.ID)

	params := &client.ListAlertsParams{}
	for {
		page, err := c.ListAlertsWithResponse(ctx, params)
		if err := client.Check(page, err); err != nil {
			fmt.Println(err)
			return
		}
		for _, alert := range page.JSON200.Items {
			fmt.Println(alert.FiredAt, alert.Title)
		}
		if page.JSON200.NextCursor == nil {
			return
		}
		params.Cursor = page.JSON200.NextCursor
	}
}
