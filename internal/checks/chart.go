package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

const (
	chartSchema  = "deploy/helm/tocsin/values.schema.json"
	settingsPage = "docs/settings.md"
)

// settingListed matches a setting in the reference, by its present name or a former one.
var settingListed = regexp.MustCompile("(?m)^\\| `TOCSIN_([A-Z_]+)`|TOCSIN_([A-Z_]+) is the former name")

// notInChart lists the settings that the chart's values must not contain.
func notInChart() []string {
	return []string{
		// Secrets, and addresses that may contain a password: a ConfigMap would show them.
		"postgres-url", "clickhouse-url", "encryption-key", "admin-password", "oidc-client-secret", "metrics-token", "bus-url", "outgoing-proxy",
		// The chart sets them.
		"listen", "shutdown-delay", "shutdown-timeout", "source-file", "config",
		// Settings of commands that call a server.
		"token", "token-file", "url",
	}
}

// checkChartSettings checks that the chart accepts each setting of a replica that is not a secret,
// and no other one: pods with an unknown key would end again and again.
func checkChartSettings(tree fs.FS) ([]string, error) {
	page, err := fs.ReadFile(tree, settingsPage)
	if err != nil {
		return nil, fmt.Errorf("read the reference of settings: %w", err)
	}
	text, err := fs.ReadFile(tree, chartSchema)
	if err != nil {
		return nil, fmt.Errorf("read the chart's schema: %w", err)
	}
	var schema struct {
		Properties struct {
			Settings struct {
				PropertyNames struct {
					Enum []string `json:"enum"`
				} `json:"propertyNames"`
			} `json:"settings"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("read %s: %w", chartSchema, err)
	}
	takes := schema.Properties.Settings.PropertyNames.Enum
	var findings, listed []string
	for _, match := range settingListed.FindAllStringSubmatch(string(page), -1) {
		name := strings.ReplaceAll(strings.ToLower(match[1]+match[2]), "_", "-")
		listed = append(listed, name)
		if slices.Contains(takes, name) == slices.Contains(notInChart(), name) {
			findings = append(findings, fmt.Sprintf("%s: settings must take %s, or internal/checks/chart.go say why it must not, such as a secret", chartSchema, name))
		}
	}
	for _, name := range takes {
		if !slices.Contains(listed, name) {
			findings = append(findings, fmt.Sprintf("%s: settings takes %s, which %s does not list", chartSchema, name, settingsPage))
		}
	}
	return findings, nil
}
