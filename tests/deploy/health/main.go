// Says what GitOps tools make of an object. Each line of the input is a JSON object
//
//	{"object": {...}, "lua": "...", "cel": {"inProgress": "...", "failed": "...", "current": "..."}}
//
// and each line of the output is what kstatus reads in it by its conditions alone, what the Lua code answers as Argo CD
// would run it, and what Flux's own evaluator makes of the CEL expressions.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

type question struct {
	Object unstructured.Unstructured        `json:"object"`
	Lua    string                           `json:"lua"`
	CEL    kustomize.HealthCheckExpressions `json:"cel"`
}

type health struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

type answer struct {
	Kstatus health `json:"kstatus"`
	Argo    health `json:"argo"`
	Flux    health `json:"flux"`
}

func main() {
	input := bufio.NewReaderSize(os.Stdin, 1<<20)
	output := json.NewEncoder(os.Stdout)
	decoder := json.NewDecoder(input)
	for decoder.More() {
		var asked question
		if err := decoder.Decode(&asked); err != nil {
			fail(err)
		}
		given, err := ask(&asked)
		if err != nil {
			fail(fmt.Errorf("%s: %w", asked.Object.GetName(), err))
		}
		if err := output.Encode(given); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func ask(asked *question) (*answer, error) {
	read, err := status.Compute(&asked.Object)
	if err != nil {
		return nil, fmt.Errorf("kstatus: %w", err)
	}
	argo, err := runLua(asked.Lua, asked.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("Lua: %w", err)
	}
	evaluator, err := cel.NewStatusEvaluator(&asked.CEL)
	if err != nil {
		return nil, fmt.Errorf("CEL: %w", err)
	}
	flux := health{Status: string(status.UnknownStatus)}
	if result, err := evaluator.Evaluate(context.Background(), &asked.Object); err == nil {
		flux = health{string(result.Status), result.Message}
	} else {
		// Flux does not know such an object's status, and asks again
		flux.Message = err.Error()
	}
	return &answer{Kstatus: health{string(read.Status), read.Message}, Argo: *argo, Flux: flux}, nil
}

// runLua gives the code a global obj, the few libraries that Argo CD opens, and one second.
func runLua(code string, object map[string]any) (*health, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.BaseLibName: lua.OpenBase,
		lua.TabLibName:  lua.OpenTable,
	} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(limit)
	state.SetGlobal("obj", toLua(state, object))
	if err := state.DoString(code); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, errors.New("the code returned no table")
	}
	return &health{lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))}, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []any:
		table := state.CreateTable(len(v), 0)
		for _, item := range v {
			table.Append(toLua(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetString(key, toLua(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
