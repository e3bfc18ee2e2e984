package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// substitute puts variables into every string of a JSON value.
func (r *runner) substitute(value any) any {
	switch value := value.(type) {
	case string:
		if match := variable.FindStringSubmatch(value); match != nil && match[0] == value {
			return r.variables[match[1]]
		}
		return r.text(value)
	case map[string]any:
		done := map[string]any{}
		for key, member := range value {
			done[key] = r.substitute(member)
		}
		return done
	case []any:
		done := make([]any, len(value))
		for i, member := range value {
			done[i] = r.substitute(member)
		}
		return done
	default:
		return value
	}
}

func (r *runner) text(value string) string {
	return variable.ReplaceAllStringFunc(value, func(found string) string {
		return fmt.Sprint(r.variables[found[2:len(found)-1]])
	})
}

// lookUp follows a path such as "items.0.id"; nil when there is nothing.
func lookUp(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch container := value.(type) {
		case map[string]any:
			value = container[name]
		case []any:
			index, err := strconv.Atoi(name)
			if err != nil || index >= len(container) {
				return nil
			}
			value = container[index]
		default:
			return nil
		}
	}
	return value
}

func text(value any, path string) string {
	found, _ := lookUp(value, path).(string)
	return found
}

func (r *runner) check(s step, o outcome) error {
	expected, _ := r.substitute(s.Expect).(map[string]any)
	if wanted, fails := expected["error"]; fails {
		if o.err == nil {
			return fmt.Errorf("succeeded where it has to fail")
		}
		return match("error", wanted, failure(o.err))
	}
	if o.err != nil {
		return o.err
	}
	values := map[string]any{
		"response": o.response,
		"items":    o.items,
		"last":     o.last,
		"count":    float64(len(o.items)),
		"calls":    float64(o.calls),
	}
	if len(o.items) > 0 {
		values["first"], values["last_item"] = o.items[0], o.items[len(o.items)-1]
	}
	if s.Join {
		values["text"] = join(o.items)
	}
	for name, pattern := range expected {
		if err := checkOne(name, pattern, values); err != nil {
			return err
		}
	}
	return nil
}

func checkOne(name string, pattern any, values map[string]any) error {
	items, _ := values["items"].([]any)
	switch name {
	case "each":
		for i, item := range items {
			if err := match(fmt.Sprintf("items.%d", i), pattern, item); err != nil {
				return err
			}
		}
		return nil
	case "rising":
		return rising(items, pattern.(string))
	default:
		return match(name, pattern, values[name])
	}
}

func rising(items []any, field string) error {
	earlier := int64(-1)
	for i, item := range items {
		found := text(item, field)
		value, err := strconv.ParseInt("0"+found, 10, 64)
		if err != nil || value <= earlier {
			return fmt.Errorf("items.%d.%s is %s after %d", i, field, found, earlier)
		}
		earlier = value
	}
	return nil
}

func join(items []any) string {
	var joined strings.Builder
	for _, item := range items {
		joined.WriteString(item.(string))
	}
	return joined.String()
}

func match(path string, pattern, value any) error {
	switch wanted := pattern.(type) {
	case map[string]any:
		return matchObject(path, wanted, value)
	case []any:
		values, _ := value.([]any)
		if len(values) != len(wanted) {
			return differs(path, pattern, value)
		}
		for i := range wanted {
			if err := match(fmt.Sprintf("%s.%d", path, i), wanted[i], values[i]); err != nil {
				return err
			}
		}
		return nil
	default:
		if reflect.DeepEqual(pattern, value) || isDefault(pattern) && isDefault(value) {
			return nil
		}
		return differs(path, pattern, value)
	}
}

func matchObject(path string, wanted map[string]any, value any) error {
	if expression, ok := wanted["$matches"].(string); ok {
		found, isText := value.(string)
		if isText && regexp.MustCompile(expression).MatchString(found) {
			return nil
		}
		return differs(path, wanted, value)
	}
	if wanted["$set"] == true {
		if isDefault(value) {
			return differs(path, wanted, value)
		}
		return nil
	}
	if length, ok := wanted["$length"].(float64); ok {
		if lengthOf(value) != int(length) {
			return differs(path, wanted, lengthOf(value))
		}
		return nil
	}
	for name, pattern := range wanted {
		if err := match(path+"."+name, pattern, lookUp(value, name)); err != nil {
			return err
		}
	}
	return nil
}

func lengthOf(value any) int {
	if list, ok := value.([]any); ok {
		return len(list)
	}
	found, _ := value.(string)
	return utf8.RuneCountInString(found)
}

func isDefault(value any) bool {
	list, isList := value.([]any)
	return isList && len(list) == 0 ||
		slices.ContainsFunc([]any{nil, "", "0", 0.0, false}, func(d any) bool { return !isList && reflect.DeepEqual(d, value) })
}

func differs(path string, wanted, found any) error {
	w, _ := json.Marshal(wanted)
	f, _ := json.Marshal(found)
	return fmt.Errorf("%s is %.300s, not %.300s", path, f, w)
}
