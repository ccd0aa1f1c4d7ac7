// Syncs and compares as Argo CD does, with its own packages: gitops-engine's cache, sync and diff, and the interpreter of its health
// checks.
//
// Usage:
//
//	argocd sync KUBECONFIG NAMESPACE APPLICATION HEALTH FOLDER   one sync with pruning, until it has ended; a line for each object
//	argocd diff HEALTH                                           pairs {"config", "live"} from stdin, a line {"modified", "health"} each
//
// HEALTH is a health check in Lua for kinds that Argo CD does not know. Objects belong to the application by the label
// app.kubernetes.io/instance, which is Argo CD's classic tracking method.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	lua "github.com/yuin/gopher-lua"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

// The label of Argo CD's classic tracking method.
const instance = "app.kubernetes.io/instance"

// How long a sync may take, and how often it looks.
const (
	limit = 3 * time.Minute
	every = 300 * time.Millisecond
)

func main() {
	var err error
	switch {
	case len(os.Args) == 7 && os.Args[1] == "sync":
		err = syncAll(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	case len(os.Args) == 3 && os.Args[1] == "diff":
		err = compareAll(os.Args[2])
	default:
		err = fmt.Errorf("usage: argocd sync KUBECONFIG NAMESPACE APPLICATION HEALTH FOLDER | argocd diff HEALTH")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "argocd:", err)
		os.Exit(1)
	}
}

type info struct{ application string }

func syncAll(kubeconfig, namespace, application, script, folder string) error {
	check, err := readScript(script)
	if err != nil {
		return err
	}
	targets, err := manifests(folder, namespace, application)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	log := logr.Discard()
	clusterCache := cache.NewClusterCache(config,
		cache.SetLogr(log),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			label := object.GetLabels()[instance]
			return &info{application: label}, label != ""
		}),
	)
	if err := clusterCache.EnsureSynced(); err != nil {
		return err
	}
	isManaged := func(resource *cache.Resource) bool {
		told, ok := resource.Info.(*info)
		return ok && told.application == application
	}
	kubectl := &kube.KubectlCmd{Log: log, Tracer: tracing.NopTracer{}}
	phase, message, started := common.OperationRunning, "", metav1.Now()
	var results []common.ResourceSyncResult
	for deadline := time.Now().Add(limit); !phase.Completed(); time.Sleep(every) {
		if time.Now().After(deadline) {
			return fmt.Errorf("the sync has not ended: %s %s\n%s", phase, message, describe(results))
		}
		live, err := clusterCache.GetManagedLiveObjs(targets, isManaged)
		if err != nil {
			return err
		}
		// As Argo CD does, a context for each look, from the state of the last.
		context, cleanup, err := sync.NewSyncContext("one", sync.Reconcile(targets, live, namespace, clusterCache), config, config, kubectl, namespace,
			sync.WithLogr(log), sync.WithPrune(true), sync.WithHealthOverride(check), sync.WithManifestValidation(true),
			sync.WithInitialState(phase, message, results, started))
		if err != nil {
			return err
		}
		context.Sync()
		phase, message, results = context.GetState()
		cleanup()
	}
	fmt.Print(describe(results))
	if phase != common.OperationSucceeded {
		return fmt.Errorf("the sync ended as %s: %s", phase, message)
	}
	return nil
}

func describe(results []common.ResourceSyncResult) string {
	var text string
	for _, result := range results {
		text += fmt.Sprintf("%d %s %s %s\n", result.Order, result.Status, result.ResourceKey.String(), result.Message)
	}
	return text
}

func manifests(folder, namespace, application string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := kube.SplitYAML(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, objects...)
	}
	for _, object := range all {
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[instance] = application
		object.SetLabels(labels)
		if object.GetNamespace() == "" && object.GetKind() != "CustomResourceDefinition" && object.GetKind() != "Namespace" {
			object.SetNamespace(namespace)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no manifests", folder)
	}
	return all, nil
}

// A health check in Lua for the kinds that gitops-engine does not know.
type luaCheck struct{ script string }

func readScript(file string) (luaCheck, error) {
	script, err := os.ReadFile(file)
	return luaCheck{string(script)}, err
}

func (check luaCheck) GetResourceHealth(object *unstructured.Unstructured) (*health.HealthStatus, error) {
	known, err := health.GetResourceHealth(object, nil)
	group := object.GroupVersionKind().Group
	if known != nil || err != nil || group == "" || group == "apiextensions.k8s.io" || group == "rbac.authorization.k8s.io" {
		return known, err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return nil, err
		}
	}
	deadline, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	state.SetContext(deadline)
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(check.script); err != nil {
		return nil, err
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the script returns no table")
	}
	return &health.HealthStatus{
		Status:  health.HealthStatusCode(state.GetField(table, "status").String()),
		Message: state.GetField(table, "message").String(),
	}, nil
}

func toLua(state *lua.LState, value any) lua.LValue {
	switch value := value.(type) {
	case bool:
		return lua.LBool(value)
	case int64:
		return lua.LNumber(value)
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

type pair struct {
	Config map[string]any `json:"config"`
	Live   map[string]any `json:"live"`
}

func compareAll(script string) error {
	check, err := readScript(script)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 64<<10), 16<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var both pair
		if err := json.Unmarshal(lines.Bytes(), &both); err != nil {
			return err
		}
		config, live := &unstructured.Unstructured{Object: both.Config}, &unstructured.Unstructured{Object: both.Live}
		compared, err := diff.Diff(config, live)
		if err != nil {
			return err
		}
		told, err := check.GetResourceHealth(live)
		if err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"modified": compared.Modified, "health": told}); err != nil {
			return err
		}
	}
	return lines.Err()
}
