// Judges objects as GitOps tools do. Reads one object per line from stdin, as JSON, and prints one line of JSON for each:
// {"lua": {"status", "message"}, "kstatus": {"status", "message"}}.
//
// Usage: health FILE
//
// FILE is a health check in Lua, run with the libraries that Argo CD opens for it: base, package, table and an os without
// access to the system. kstatus is that of sigs.k8s.io/cli-utils, which Flux and `kubectl wait` use.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// What Argo CD gives a script, by default.
const limit = time.Second

// An object may be large.
const lineBytes = 16 << 20

type verdict struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type judged struct {
	Lua     verdict `json:"lua"`
	Kstatus verdict `json:"kstatus"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: health FILE < OBJECTS")
	}
	script, err := os.ReadFile(os.Args[1])
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 64<<10), lineBytes)
	out := json.NewEncoder(os.Stdout)
	for number := 1; lines.Scan(); number++ {
		var object map[string]any
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		told, err := judge(string(script), object)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := out.Encode(told); err != nil {
			return err
		}
	}
	return lines.Err()
}

func judge(script string, object map[string]any) (judged, error) {
	byLua, err := runLua(script, object)
	if err != nil {
		return judged{}, err
	}
	result, err := status.Compute(&unstructured.Unstructured{Object: integers(object).(map[string]any)})
	if err != nil {
		return judged{}, err
	}
	return judged{Lua: byLua, Kstatus: verdict{string(result.Status), result.Message}}, nil
}

// Kubernetes' decoder makes an int64 of a whole number, encoding/json a float64; kstatus wants the former.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for key, one := range value {
			made[key] = integers(one)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for index, one := range value {
			made[index] = integers(one)
		}
		return made
	case float64:
		if whole := int64(value); float64(whole) == value {
			return whole
		}
	}
	return value
}

func runLua(script string, object map[string]any) (verdict, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.LoadLibName, lua.OpenPackage},
		{lua.BaseLibName, lua.OpenBase},
		{lua.TabLibName, lua.OpenTable},
	} {
		err := state.CallByParam(lua.P{Fn: state.NewFunction(library.open), Protect: true}, lua.LString(library.name))
		if err != nil {
			return verdict{}, err
		}
	}
	// The part of os that Argo CD opens.
	state.SetGlobal("os", state.SetFuncs(state.NewTable(), map[string]lua.LGFunction{
		"time": func(state *lua.LState) int {
			state.Push(lua.LNumber(time.Now().Unix()))
			return 1
		},
	}))
	deadline, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	state.SetContext(deadline)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(script); err != nil {
		return verdict{}, err
	}
	returned, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return verdict{}, fmt.Errorf("the script returns no table")
	}
	var told verdict
	for field, target := range map[string]*string{"status": &told.Status, "message": &told.Message} {
		switch value := state.GetField(returned, field).(type) {
		case lua.LString:
			*target = string(value)
		case *lua.LNilType:
		default:
			return verdict{}, fmt.Errorf("%s is a %s", field, value.Type())
		}
	}
	switch told.Status {
	case "Healthy", "Progressing", "Degraded", "Suspended":
		return told, nil
	default:
		return verdict{}, fmt.Errorf("status %q is not one of Argo CD's", told.Status)
	}
}

// As Argo CD converts an object: null is nil.
func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case float64:
		return lua.LNumber(value)
	case string:
		return lua.LString(value)
	case []any:
		table := state.CreateTable(len(value), 0)
		for _, one := range value {
			table.Append(toLua(state, one))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(value))
		for key, one := range value {
			table.RawSetH(lua.LString(key), toLua(state, one))
		}
		return table
	}
	return lua.LNil
}
