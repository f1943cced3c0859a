package app

import "tocsin/api"

// PathRulesSchema is where a server has what [RulesSchema] returns.
const PathRulesSchema = api.PathRulesSchema

// RulesSchema returns the JSON Schema of files of rules.
func RulesSchema() ([]byte, error) { return api.RulesSchema() }
