package clickhouse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tocsin/evaluator/source"
)

// maxTenantNames is how many bytes the names of tenants in a query may have before the share decides, and in
// one parameter. Each byte is sent as two hexadecimal digits, over HTTP in the address, of which ClickHouse
// refuses a parameter of more than 128 KiB.
const maxTenantNames = 16 << 10

// one returns the tenants for a query about a single one.
func one(tenantID string) source.Tenants { return source.Tenants{Names: []string{tenantID}} }

// tenant returns the expression of a row's tenant.
func (m *Mapping) tenant() string {
	if m.TenantID == "" {
		return "unhex('" + hexadecimal(m.Tenant) + "')"
	}
	return operand(m.TenantID)
}

// tenants returns the condition that a row belongs to some tenants; empty if every row does. Names
// are listed, so that a sort key that begins with the tenant prunes. If there are too many names,
// the share decides.
func (m *Mapping) tenants(parameters map[string]string, t source.Tenants) string {
	if m.TenantID == "" {
		if slices.Contains(t.Names, m.Tenant) {
			return ""
		}
		return "false"
	}
	if len(t.Names) == 1 {
		parameters["tenant"] = hexadecimal(t.Names[0])
		return m.tenant() + " = unhex({tenant:String})"
	}
	// No name contains a zero byte, because Postgres, where tenants are stored, does not allow one.
	names := strings.Join(t.Names, "\x00")
	switch {
	case t.Of == 0 || len(names) <= maxTenantNames:
		return m.tenant() + " IN " + listOf(parameters, names)
	case t.Of == 1:
		return ""
	default:
		parameters["of"], parameters["index"] = strconv.FormatUint(uint64(t.Of), 10), strconv.FormatUint(uint64(t.Index), 10)
		return fmt.Sprintf("xxHash64(%s) %% {of:UInt32} = {index:UInt32}", m.tenant())
	}
}

// listOf returns names that are separated by zero bytes, in as few parameters as possible.
func listOf(parameters map[string]string, names string) string {
	var parts []string
	for more := true; more; {
		part := names
		if more = len(names) > maxTenantNames; more {
			// No name is that long.
			end := strings.LastIndexByte(names[:maxTenantNames], 0)
			part, names = names[:end], names[end+1:]
		}
		name := "tenants"
		if len(parts) > 0 {
			name += "_" + strconv.Itoa(len(parts))
		}
		parameters[name] = hexadecimal(part)
		parts = append(parts, `splitByChar('\0', unhex({`+name+`:String}))`)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "arrayConcat(" + strings.Join(parts, ", ") + ")"
}

// rowsOf returns the condition for the terminal rows of some tenants, and prunes to a range of
// start times. The caller adds the condition on the range itself.
func (m *Mapping) rowsOf(parameters map[string]string, t source.Tenants, fromNS, toNS int64) string {
	return all(m.tenants(parameters, t), m.pruned(pruneInstant(fromNS), pruneInstant(toNS)), m.terminal())
}

// all combines conditions by AND and ignores empty ones.
func all(conditions ...string) string {
	conditions = slices.DeleteFunc(conditions, func(c string) bool { return c == "" })
	if len(conditions) == 0 {
		return "true"
	}
	return strings.Join(conditions, "\n  AND ")
}
