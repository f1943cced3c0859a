package app

import "tocsin/api"

// PathRulesSchema is the path at which a server has the result of [RulesSchema].
const PathRulesSchema = api.PathRulesSchema

// RulesSchema returns the JSON Schema of files of rules.
func RulesSchema() ([]byte, error) { return api.RulesSchema() }
