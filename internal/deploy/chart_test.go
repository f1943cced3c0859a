package deploy

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

const chartFolder = "../../deploy/helm/tocsin"

// values are the minimum that the chart requires, with changes.
func values(changes map[string]any) map[string]any {
	v := map[string]any{
		"image":  map[string]any{"repository": "registry.example.com/tocsin"},
		"secret": map[string]any{"name": "tocsin-secrets"},
	}
	maps.Copy(v, changes)
	return v
}

// everything enables all that is disabled by default.
func everything() map[string]any {
	return map[string]any{
		"replicas":          3,
		"settings":          map[string]any{"public-url": "https://tocsin.example.com", "outgoing-allow": []any{"10.0.0.0/8"}, "log-format": "text"},
		"source":            map[string]any{"preset": "otel_traces", "table": "otel.otel_traces"},
		"extraEnv":          []any{map[string]any{"name": "TOCSIN_METRICS_TOKEN", "value": "x"}},
		"extraVolumes":      []any{map[string]any{"name": "authorities", "configMap": map[string]any{"name": "ca"}}},
		"extraVolumeMounts": []any{map[string]any{"name": "authorities", "mountPath": "/etc/authorities", "readOnly": true}},
		"priorityClassName": "high",
		"affinity":          map[string]any{"nodeAffinity": map[string]any{}},
		"podLabels":         map[string]any{"team": "platform"},
		"podAnnotations":    map[string]any{"example.com/a": "b"},
		"nodeSelector":      map[string]any{"kubernetes.io/arch": "arm64"},
		"tolerations":       []any{map[string]any{"key": "a", "operator": "Exists"}},
		"imagePullSecrets":  []any{map[string]any{"name": "pull"}},
		"service":           map[string]any{"port": 8080, "annotations": map[string]any{"a": "b"}},
		"ingress":           map[string]any{"enabled": true, "className": "nginx", "host": "tocsin.example.com", "tlsSecretName": "tls", "annotations": map[string]any{"a": "b"}},
		"networkPolicy": map[string]any{
			"enabled": true, "from": []any{map[string]any{"podSelector": map[string]any{}}},
			"egress": []any{map[string]any{"ports": []any{map[string]any{"port": 5432}}}},
		},
		"serviceMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "tokenSecret": map[string]any{"name": "s", "key": "k"}},
		"prometheusRule": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}, "runbookURL": "https://docs.example.com/runbook.html"},
	}
}

// rendered returns the objects of the chart by kind, decoded strictly into the types of Kubernetes.
func rendered(t *testing.T, v map[string]any) (map[string]runtime.Object, error) {
	t.Helper()
	chart, err := loader.Load(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "alerts", Namespace: "monitoring", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(chart, v, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, monitoring.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, known, known, json.SerializerOptions{Yaml: true, Strict: true})
	objects := map[string]runtime.Object{}
	for name, text := range files {
		if strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, ".tpl") {
			continue
		}
		for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
			if strings.TrimSpace(document) == "" {
				continue
			}
			object, kind, err := decoder.Decode([]byte(document), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, document)
				continue
			}
			objects[kind.Kind] = object
		}
	}
	return objects, nil
}

// podsOf returns the pods that the chart runs.
func podsOf(objects map[string]runtime.Object) map[string]corev1.PodSpec {
	return map[string]corev1.PodSpec{
		"Deployment": objects["Deployment"].(*appsv1.Deployment).Spec.Template.Spec, "Job": objects["Job"].(*batchv1.Job).Spec.Template.Spec,
	}
}

func TestTheChartIsLinted(t *testing.T) {
	for name, v := range map[string]map[string]any{"least": values(nil), "everything": values(everything())} {
		result := lint.RunAll(chartFolder, v, "monitoring")
		for _, m := range result.Messages {
			// Only an icon may be missing.
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", name, m)
			}
		}
	}
}

func TestTheChartRendersWhatKubernetesTakes(t *testing.T) {
	least, err := rendered(t, values(nil))
	if err != nil {
		t.Fatal(err)
	}
	if kinds := slices.Sorted(maps.Keys(least)); !slices.Equal(kinds, []string{"ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Service"}) {
		t.Errorf("by default there are %v", kinds)
	}
	all, err := rendered(t, values(everything()))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]runtime.Object{
		"Ingress": &networkingv1.Ingress{}, "NetworkPolicy": &networkingv1.NetworkPolicy{}, "PodDisruptionBudget": &policyv1.PodDisruptionBudget{},
		"ServiceMonitor": &monitoring.ServiceMonitor{}, "PrometheusRule": &monitoring.PrometheusRule{},
	} {
		if all[kind] == nil {
			t.Errorf("with everything there is no %s (%T)", kind, want)
		}
	}
	rules := all["PrometheusRule"].(*monitoring.PrometheusRule)
	if len(rules.Spec.Groups) != 4 || len(rules.Spec.Groups[1].Rules) == 0 || !strings.Contains(rules.Spec.Groups[1].Rules[1].Annotations["summary"], "{{ $value }}") {
		t.Errorf("the rules are %+v", rules.Spec)
	}
	for _, group := range rules.Spec.Groups {
		for _, rule := range group.Rules {
			if want := "https://docs.example.com/runbook.html#" + strings.ToLower(rule.Alert); rule.Alert != "" && rule.Annotations["runbook_url"] != want {
				t.Errorf("%s leads to %q, want %s", rule.Alert, rule.Annotations["runbook_url"], want)
			}
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr.String()); err != nil {
				t.Errorf("%s%s: %v", rule.Alert, rule.Record, err)
			}
		}
	}
	if down := rules.Spec.Groups[1].Rules[0].Expr.String(); down != `absent(tocsin_outbox_depth{namespace="monitoring", job="alerts-tocsin"})` {
		t.Errorf("a release misses its replicas by %s", down)
	}
	for kind, pod := range podsOf(all) {
		c := pod.Containers[0]
		if pod.NodeSelector["kubernetes.io/arch"] != "arm64" || len(pod.Tolerations) != 1 || pod.Affinity == nil || pod.PriorityClassName != "high" {
			t.Errorf("the pod of the %s may run on %v, %v, %v, as %q", kind, pod.NodeSelector, pod.Tolerations, pod.Affinity, pod.PriorityClassName)
		}
		if n := len(c.VolumeMounts); n == 0 || c.VolumeMounts[n-1].MountPath != "/etc/authorities" || pod.Volumes[n-1].ConfigMap.Name != "ca" || c.Env[len(c.Env)-1].Name != "TOCSIN_METRICS_TOKEN" {
			t.Errorf("the pod of the %s has the volumes %v, the mounts %v and the variables %v", kind, pod.Volumes, c.VolumeMounts, c.Env)
		}
	}
	one, err := rendered(t, values(map[string]any{"replicas": 1}))
	if err != nil {
		t.Fatal(err)
	}
	if one["PodDisruptionBudget"] != nil {
		t.Error("a single replica has a disruption budget, which would keep its node from being drained")
	}
}

// TestPodsAreRestrictedAndEndInTime checks the requirements of the Pod Security Standard
// "restricted", and that a replica has the time to stop that its settings require.
func TestPodsAreRestrictedAndEndInTime(t *testing.T) {
	objects, err := rendered(t, values(map[string]any{"drainDelaySeconds": 7, "shutdownTimeoutSeconds": 20, "settings": map[string]any{"tick-interval": "2s"}}))
	if err != nil {
		t.Fatal(err)
	}
	deployment := objects["Deployment"].(*appsv1.Deployment)
	pods := podsOf(objects)
	for kind, pod := range pods {
		s, c := pod.SecurityContext, pod.Containers[0].SecurityContext
		if !*s.RunAsNonRoot || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *c.AllowPrivilegeEscalation || !*c.ReadOnlyRootFilesystem ||
			!slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) || *pod.AutomountServiceAccountToken {
			t.Errorf("the pod of the %s is not restricted: %+v, %+v", kind, s, c)
		}
	}
	usual, err := rendered(t, values(nil))
	if err != nil {
		t.Fatal(err)
	}
	// Within the default drain delay Kubernetes has to notice that a replica is not ready.
	if seen, delay := podsOf(usual)["Deployment"].Containers[0].ReadinessProbe, 10; int(seen.PeriodSeconds*seen.FailureThreshold) >= delay ||
		!strings.Contains(usual["ConfigMap"].(*corev1.ConfigMap).Data["tocsin.yaml"], fmt.Sprintf("shutdown-delay: %ds", delay)) {
		t.Errorf("a replica that drains for %d s is seen not to be ready by %+v", delay, seen)
	}
	if got := *pods["Deployment"].TerminationGracePeriodSeconds; got != 7+20+5 {
		t.Errorf("a replica has %d seconds to end", got)
	}
	// An unreachable database is no reason to restart a replica: only readiness may depend on it.
	c := pods["Deployment"].Containers[0]
	for name, probe := range map[string]struct {
		*corev1.Probe
		path string
	}{"startup": {c.StartupProbe, "/healthz"}, "liveness": {c.LivenessProbe, "/healthz"}, "readiness": {c.ReadinessProbe, "/readyz"}} {
		if probe.Probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != probe.path || probe.HTTPGet.Port.StrVal != "http" {
			t.Errorf("the %s probe is %+v, want one of %s", name, probe.Probe, probe.path)
		}
	}
	if len(c.Ports) != 1 || c.Ports[0].Name != "http" || c.Ports[0].ContainerPort != 8080 {
		t.Errorf("the ports are %v", c.Ports)
	}
	if away := deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue(); away != 0 {
		t.Errorf("an update takes %d replicas away", away)
	}
	if job := objects["Job"].(*batchv1.Job); !strings.Contains(job.Annotations["helm.sh/hook"], "pre-upgrade") {
		t.Errorf("the migration is %v", job.Annotations)
	}
	known := settings(t)
	for kind, pod := range pods {
		for _, e := range pod.Containers[0].Env {
			if !known[e.Name] {
				t.Errorf("%s of the %s is not a setting", e.Name, kind)
			}
		}
	}
	var file map[string]any
	if err := yaml.Unmarshal([]byte(objects["ConfigMap"].(*corev1.ConfigMap).Data["tocsin.yaml"]), &file); err != nil {
		t.Fatal(err)
	}
	if file["shutdown-delay"] != "7s" || file["shutdown-timeout"] != "20s" || file["tick-interval"] != "2s" || file["log-format"] != "json" {
		t.Errorf("the settings are %v", file)
	}
	for key := range file {
		if !known["TOCSIN_"+strings.ToUpper(strings.ReplaceAll(key, "-", "_"))] {
			t.Errorf("%s is not a setting", key)
		}
	}
}

// TestTheChartGoesAroundAPooler checks that only the migration and the wake-up bus connect to
// Postgres directly.
func TestTheChartGoesAroundAPooler(t *testing.T) {
	keysOf := func(v map[string]any) map[string]string {
		t.Helper()
		objects, err := rendered(t, v)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]string{}
		for kind, pod := range podsOf(objects) {
			for _, e := range pod.Containers[0].Env {
				if e.ValueFrom != nil {
					keys[kind+" "+e.Name] = e.ValueFrom.SecretKeyRef.Key
				}
			}
		}
		return keys
	}
	want := map[string]string{
		"Deployment TOCSIN_POSTGRES_URL": "postgres-url", "Deployment TOCSIN_CLICKHOUSE_URL": "clickhouse-url", "Deployment TOCSIN_ENCRYPTION_KEY": "encryption-key",
		"Job TOCSIN_POSTGRES_URL": "postgres-url",
	}
	if got := keysOf(values(nil)); !maps.Equal(got, want) {
		t.Errorf("without a pooler the pods read %v, want %v", got, want)
	}
	want["Deployment TOCSIN_BUS_URL"], want["Job TOCSIN_POSTGRES_URL"] = "direct-url", "direct-url"
	through := map[string]any{"secret": map[string]any{"name": "s", "keys": map[string]any{"directPostgresURL": "direct-url"}}}
	if got := keysOf(values(through)); !maps.Equal(got, want) {
		t.Errorf("behind a pooler the pods read %v, want %v", got, want)
	}
}

func TestTheChartRefusesWrongValues(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		says   string
	}{
		"no image":               {map[string]any{"image": map[string]any{"repository": ""}}, "repository"},
		"no secret":              {map[string]any{"secret": map[string]any{"name": ""}}, "name"},
		"a key that is unknown":  {map[string]any{"replcas": 3}, "replcas"},
		"no replicas":            {map[string]any{"replicas": 0}, "replicas"},
		"a secret setting":       {map[string]any{"settings": map[string]any{"encryption-key": "x"}}, "encryption-key"},
		"a bus with a password":  {map[string]any{"settings": map[string]any{"bus-url": "redis://user:password@redis:6379"}}, "bus-url"},
		"a proxy with one":       {map[string]any{"settings": map[string]any{"outgoing-proxy": "http://user:password@proxy:3128"}}, "outgoing-proxy"},
		"a token":                {map[string]any{"settings": map[string]any{"token": "tcn_x"}}, "token"},
		"a setting there is not": {map[string]any{"settings": map[string]any{"tick-intervall": "1s"}}, "tick-intervall"},
		"a setting in capitals":  {map[string]any{"settings": map[string]any{"publicUrl": "x"}}, "publicUrl"},
		"an ingress, no host":    {map[string]any{"ingress": map[string]any{"enabled": true}}, "host"},
		"a runbook nowhere":      {map[string]any{"prometheusRule": map[string]any{"runbookURL": "docs/runbook.md"}}, "runbookURL"},
		"a short digest":         {map[string]any{"image": map[string]any{"repository": "a", "digest": "sha256:12"}}, "digest"},
	} {
		if _, err := rendered(t, values(c.change)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheChartHoldsTheRules checks that the chart's copy equals the original file.
func TestTheChartHoldsTheRules(t *testing.T) {
	inside, err := os.ReadFile(chartFolder + "/files/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	outside, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(inside) != string(outside) {
		t.Error("the rules of the chart differ from deploy/prometheus/rules.yaml")
	}
}
