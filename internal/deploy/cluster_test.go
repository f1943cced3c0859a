//go:build cluster

package deploy

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// cluster is a real API server on a real etcd. No pods run.
type cluster struct {
	t       *testing.T
	api     *kubernetes.Clientset
	helm    string
	kubecfg string
	// migrations returns the number of Jobs that the cluster has run.
	migrations func() int
}

const (
	namespace = "monitoring"
	// restricted makes the API server reject pods that violate that standard, and warn about
	// objects that would create such pods.
	restricted = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "` + namespace + `", "labels": {
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}}}`
	token = "the-token-of-the-test"
)

// startCluster starts etcd, the API server with its default admission plugins, and the resource
// types of the Prometheus operator.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	programs, crds := os.Getenv("TOCSIN_TEST_CLUSTER"), os.Getenv("TOCSIN_TEST_CRDS")
	if programs == "" || crds == "" {
		t.Fatal("TOCSIN_TEST_CLUSTER and TOCSIN_TEST_CRDS are not set: run the test with make test-chart")
	}
	dir := t.TempDir()
	store, peers, address := freeAddress(t), freeAddress(t), freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	// The API server has to end before etcd does.
	background(t, filepath.Join(programs, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+store, "--advertise-client-urls=http://"+store, "--listen-peer-urls=http://"+peers,
		"--initial-advertise-peer-urls=http://"+peers, "--initial-cluster=default=http://"+peers)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	accounts, tokens := filepath.Join(dir, "accounts.key"), filepath.Join(dir, "tokens.csv")
	err = errors.Join(
		os.WriteFile(accounts, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600),
		os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	background(t, filepath.Join(programs, "kube-apiserver"), "--etcd-servers=http://"+store, "--cert-dir="+filepath.Join(dir, "certs"),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-account-key-file="+accounts, "--service-account-signing-key-file="+accounts, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount", "--v=0")
	authority := filepath.Join(dir, "certs", "apiserver.crt")
	c := &cluster{t: t, helm: filepath.Join(programs, "helm"), kubecfg: filepath.Join(dir, "config")}
	config := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": [{"name": "c", "cluster": {"server": "https://%s", "certificate-authority": %q}}],
		"users": [{"name": "u", "user": {"token": %q}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": %q}}]}`, address, authority, token, namespace)
	if err := os.WriteFile(c.kubecfg, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	untilWithin(t, time.Minute, "the API server", func(ctx context.Context) error {
		api, err := kubernetes.NewForConfig(&rest.Config{Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: authority}, QPS: -1})
		if err != nil {
			return err
		}
		c.api = api
		return api.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
	c.create("/api/v1/namespaces", "application/json", restricted)
	for _, kind := range []string{"servicemonitors", "prometheusrules"} {
		text, err := os.ReadFile(filepath.Join(crds, "monitoring.coreos.com_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/yaml", string(text))
		until(t, kind, func(ctx context.Context) error {
			return c.api.RESTClient().Get().AbsPath("/apis/monitoring.coreos.com/v1/namespaces/" + namespace + "/" + kind).Do(ctx).Error()
		})
	}
	c.runJobs()
	return c
}

// background runs a program until the test ends; the last one started ends first.
func background(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...) //nolint:noctx // ended below
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		waited := make(chan error, 1)
		go func() { waited <- cmd.Wait() }()
		select {
		case <-waited:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-waited
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), log.String())
		}
	})
}

func (c *cluster) create(path, kind, text string) {
	c.t.Helper()
	if err := c.api.RESTClient().Post().AbsPath(path).SetHeader("Content-Type", kind).Body([]byte(text)).Do(c.t.Context()).Error(); err != nil {
		c.t.Fatalf("create %s: %v", path, err)
	}
}

// runJobs makes every Job succeed, since no pods run.
func (c *cluster) runJobs() {
	var mutex sync.Mutex
	done := map[string]bool{}
	c.migrations = func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(done)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			jobs, err := c.api.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue
			}
			for i := range jobs.Items {
				job := &jobs.Items[i]
				if job.Status.Succeeded > 0 {
					continue
				}
				now := metav1.Now()
				job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
				for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
					job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
						Type: kind, Status: corev1.ConditionTrue, Reason: "Test", LastTransitionTime: now, LastProbeTime: now,
					})
				}
				if _, err := c.api.BatchV1().Jobs(namespace).UpdateStatus(ctx, job, metav1.UpdateOptions{}); err == nil {
					mutex.Lock()
					done[string(job.UID)] = true
					mutex.Unlock()
				}
			}
		}
	})
	c.t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// run runs Helm with values, and returns its output.
func (c *cluster) run(v map[string]any, args ...string) (string, error) {
	c.t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
	if v != nil {
		args = append(args, "--values="+file)
	}
	cmd := exec.CommandContext(c.t.Context(), c.helm, args...)
	home := c.t.TempDir()
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubecfg, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// does runs Helm, and checks that it succeeds without warnings of the API server.
func (c *cluster) does(v map[string]any, args ...string) string {
	c.t.Helper()
	out, err := c.run(v, args...)
	if err != nil || strings.Contains(strings.ToLower(out), "warning") || strings.Contains(out, "would violate") {
		c.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// pod lets the API server check a pod that the chart describes.
func (c *cluster) pod(template *corev1.PodTemplateSpec, change func(*corev1.PodSpec)) error {
	spec := template.Spec.DeepCopy()
	change(spec)
	_, err := c.api.CoreV1().Pods(namespace).Create(c.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "tried-", Labels: template.Labels, Annotations: template.Annotations}, Spec: *spec,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// TestARealAPIServerTakesTheChart installs, updates, rolls back and removes the chart with Helm, as
// docs/install.md describes, on a real API server that enforces the Pod Security Standard
// "restricted", with the minimal values and with everything enabled.
func TestARealAPIServerTakesTheChart(t *testing.T) {
	c := startCluster(t)
	c.create("/api/v1/namespaces/"+namespace+"/secrets", "application/json",
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tocsin-secrets"}, "stringData": {"postgres-url": "p", "clickhouse-url": "c", "encryption-key": "k"}}`)
	c.create("/apis/scheduling.k8s.io/v1/priorityclasses", "application/json",
		`{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}`)
	deployment := func() (template *corev1.PodTemplateSpec, replicas int32) {
		t.Helper()
		d, err := c.api.AppsV1().Deployments(namespace).Get(t.Context(), "alerts-tocsin", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return &d.Spec.Template, *d.Spec.Replicas
	}
	kinds := map[string]string{
		"Deployment": "/apis/apps/v1", "ConfigMap": "/api/v1", "Service": "/api/v1", "PodDisruptionBudget": "/apis/policy/v1", "Ingress": "/apis/networking.k8s.io/v1",
		"NetworkPolicy": "/apis/networking.k8s.io/v1", "ServiceMonitor": "/apis/monitoring.coreos.com/v1", "PrometheusRule": "/apis/monitoring.coreos.com/v1",
	}
	// there lists the kinds of which the release has an object.
	there := func() (found []string) {
		t.Helper()
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			plural := strings.ToLower(kind) + "s"
			if kind == "Ingress" {
				plural = "ingresses"
			}
			if kind == "NetworkPolicy" {
				plural = "networkpolicies"
			}
			err := c.api.RESTClient().Get().AbsPath(kinds[kind] + "/namespaces/" + namespace + "/" + plural + "/alerts-tocsin").Do(t.Context()).Error()
			if err == nil {
				found = append(found, kind)
			}
		}
		return found
	}

	c.does(values(nil), "install", "alerts", chartFolder)
	if got := there(); !slices.Equal(got, []string{"ConfigMap", "Deployment", "PodDisruptionBudget", "Service"}) || c.migrations() != 1 {
		t.Errorf("installed are %v, after %d migrations", got, c.migrations())
	}
	first, _ := deployment()
	settings := first.Annotations["checksum/settings"]

	c.does(values(everything()), "upgrade", "alerts", chartFolder)
	if got := there(); len(got) != len(kinds) || c.migrations() != 2 {
		t.Errorf("with everything there are %v, after %d migrations", got, c.migrations())
	}
	template, replicas := deployment()
	if replicas != 3 || template.Annotations["checksum/settings"] == settings {
		t.Errorf("after the update there are %d replicas, and their settings are %q", replicas, template.Annotations["checksum/settings"])
	}
	for name, change := range map[string]struct {
		do      func(*corev1.PodSpec)
		refused string
	}{
		"as it is":             {func(*corev1.PodSpec) {}, ""},
		"as root":              {func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot, s.SecurityContext.RunAsUser = nil, new(int64) }, "runAsNonRoot"},
		"with capabilities":    {func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil }, "unrestricted capabilities"},
		"with any system call": {func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil }, "seccompProfile"},
	} {
		err := c.pod(template, change.do)
		if change.refused == "" && err != nil || change.refused != "" && (err == nil || !strings.Contains(err.Error(), change.refused)) {
			t.Errorf("a pod %s: %v; want it refused for %q", name, err, change.refused)
		}
	}

	// The update with all replicas stopped, as docs/install.md prints it.
	scale := func(replicas int) {
		t.Helper()
		_, err := c.api.AppsV1().Deployments(namespace).Patch(t.Context(), "alerts-tocsin", types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas),
			metav1.PatchOptions{FieldManager: "kubectl"}, "scale")
		if err != nil {
			t.Fatal(err)
		}
		if _, got := deployment(); got != int32(replicas) { //nolint:gosec // a few
			t.Fatalf("there are %d replicas, want %d", got, replicas)
		}
	}
	const tag = "9.9.9"
	update := append([]string{"upgrade", "alerts", chartFolder}, printed(t, "helm upgrade tocsin deploy/helm/tocsin")...)
	update[len(update)-1] = strings.Replace(update[len(update)-1], "…", tag, 1)
	scale(0)
	c.does(nil, update...)
	if template, replicas := deployment(); replicas != 3 || c.migrations() != 3 || !strings.HasSuffix(template.Spec.Containers[0].Image, ":"+tag) {
		t.Errorf("after the update of stopped replicas there are %d, of %s, after %d migrations", replicas, template.Spec.Containers[0].Image, c.migrations())
	}
	// Another number belongs to the client that has set it.
	scale(1)
	if out, err := c.run(nil, update...); err == nil || !strings.Contains(out, "conflict") {
		t.Errorf("helm upgrade takes the number of replicas from kubectl: %v\n%s", err, out)
	}
	c.does(nil, append(update, "--force-conflicts")...)
	if _, replicas := deployment(); replicas != 3 {
		t.Errorf("after the update that takes it, there are %d replicas", replicas)
	}

	// What Helm and the chart's schema accept, and only the server rejects.
	for name, refused := range map[string]struct {
		change map[string]any
		says   string
	}{
		"many that may be away": {map[string]any{"disruptionBudget": map[string]any{"maxUnavailable": "many"}}, "maxUnavailable"},
		"a label with a space":  {map[string]any{"podLabels": map[string]any{"team": "no label"}}, "no label"},
		"a field that is not":   {map[string]any{"networkPolicy": map[string]any{"enabled": true, "from": []any{map[string]any{"podSelektor": map[string]any{}}}}}, "podSelektor"},
		"an amount that is no amount": {
			map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "much"}}}, "quantit",
		},
	} {
		if out, err := c.run(values(refused.change), "install", "wrong", chartFolder); err == nil || !strings.Contains(out, refused.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		_, _ = c.run(nil, "uninstall", "wrong", "--ignore-not-found")
	}

	c.does(nil, "rollback", "alerts", "1")
	if template, replicas := deployment(); replicas != 2 || template.Annotations["checksum/settings"] != settings {
		t.Errorf("after the rollback there are %d replicas, and their settings are %q, want %q", replicas, template.Annotations["checksum/settings"], settings)
	}
	c.does(nil, "uninstall", "alerts")
	if got := there(); len(got) != 0 {
		t.Errorf("after the removal there are still %v", got)
	}
	jobs, err := c.api.BatchV1().Jobs(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 0 {
		t.Errorf("jobs after the removal: %v, %v", jobs, err)
	}
}
