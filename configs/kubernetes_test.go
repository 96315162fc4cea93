package configs_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// kubernetes decodes the file into the typed objects of the API, by kind and name. A key that they lack is an error.
func kubernetes(t *testing.T) map[string]any {
	t.Helper()
	data, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
			t.Fatal(err)
		}
		var object any
		switch head.APIVersion + " " + head.Kind {
		case " ":
			continue // the comment at the top
		case "v1 PersistentVolumeClaim":
			object = new(corev1.PersistentVolumeClaim)
		case "v1 Service":
			object = new(corev1.Service)
		case "networking.k8s.io/v1 NetworkPolicy":
			object = new(networkingv1.NetworkPolicy)
		case "batch/v1 Job":
			object = new(batchv1.Job)
		default:
			t.Fatalf("%s %s: no such object here", head.APIVersion, head.Kind)
		}
		if err := yaml.UnmarshalStrict([]byte(doc), object); err != nil {
			t.Fatalf("%s %s: %v", head.Kind, head.Metadata.Name, err)
		}
		objects[head.Kind+" "+head.Metadata.Name] = object
	}
	return objects
}

func find[T any](t *testing.T, name string) T {
	t.Helper()
	o, ok := kubernetes(t)[name].(T)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return o
}

func container(t *testing.T, j *batchv1.Job) corev1.Container {
	t.Helper()
	if n := len(j.Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%s: %d containers", j.Name, n)
	}
	return j.Spec.Template.Spec.Containers[0]
}

// after is the argument that follows a flag.
func after(args []string, flag string) string {
	if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
		return args[i+1]
	}
	return ""
}

func TestPodsAreIndexedAndLandOnDistinctNodes(t *testing.T) {
	contender, coordinator := find[*batchv1.Job](t, "Job claimbench-contender"), find[*batchv1.Job](t, "Job claimbench-coordinator")
	spec := contender.Spec
	if spec.CompletionMode == nil || *spec.CompletionMode != batchv1.IndexedCompletion {
		t.Errorf("completion mode %v", spec.CompletionMode)
	}
	hosts := after(container(t, coordinator).Args, "--hosts")
	if fmt.Sprint(*spec.Completions) != hosts || fmt.Sprint(*spec.Parallelism) != hosts {
		t.Errorf("%d completions, %d at once, and %s hosts are waited for", *spec.Completions, *spec.Parallelism, hosts)
	}
	apart := spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].TopologyKey != corev1.LabelHostname || !covers(apart[0].LabelSelector.MatchLabels, spec.Template.Labels) {
		t.Errorf("pods are kept apart by %+v, and have %v", apart, spec.Template.Labels)
	}
}

// covers says that a selector takes in what has these labels, and is not empty.
func covers(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

func TestRowsNameTheNode(t *testing.T) {
	c := container(t, find[*batchv1.Job](t, "Job claimbench-contender"))
	if after(c.Args, "--name") != "$(NODE_NAME)" {
		t.Errorf("%v", c.Args)
	}
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "NODE_NAME" })
	if i < 0 || c.Env[i].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("%+v", c.Env)
	}
}

func TestContendersReachTheCoordinatorAndNobodyElseDoes(t *testing.T) {
	contender, coordinator := find[*batchv1.Job](t, "Job claimbench-contender"), find[*batchv1.Job](t, "Job claimbench-coordinator")
	service, policy := find[*corev1.Service](t, "Service claimbench"), find[*networkingv1.NetworkPolicy](t, "NetworkPolicy claimbench")
	labels := coordinator.Spec.Template.Labels
	if !covers(service.Spec.Selector, labels) || covers(service.Spec.Selector, contender.Spec.Template.Labels) {
		t.Errorf("the service selects %v", service.Spec.Selector)
	}
	if !covers(policy.Spec.PodSelector.MatchLabels, labels) || !covers(policy.Spec.Ingress[0].From[0].PodSelector.MatchLabels, contender.Spec.Template.Labels) {
		t.Errorf("%+v", policy.Spec)
	}
	serve, join := container(t, coordinator), container(t, contender)
	port := serve.Ports[0]
	if p := service.Spec.Ports[0]; p.TargetPort.StrVal != port.Name || p.Port != port.ContainerPort || policy.Spec.Ingress[0].Ports[0].Port.StrVal != port.Name {
		t.Errorf("service %+v, policy %+v, container %+v", p, policy.Spec.Ingress[0].Ports, port)
	}
	if got := after(serve.Args, "--listen"); got != fmt.Sprintf("0.0.0.0:%d", port.ContainerPort) {
		t.Errorf("it listens on %s", got)
	}
	if got := join.Args[len(join.Args)-1]; got != fmt.Sprintf("nats://%s:%d", service.Name, service.Spec.Ports[0].Port) {
		t.Errorf("contenders go to %s", got)
	}
}

func TestTheClaimIsSharedAndIsWhatIsSurveyed(t *testing.T) {
	claim := find[*corev1.PersistentVolumeClaim](t, "PersistentVolumeClaim claimbench")
	if !slices.Equal(claim.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
		t.Errorf("%v", claim.Spec.AccessModes)
	}
	job := find[*batchv1.Job](t, "Job claimbench-contender")
	c, volume := container(t, job), job.Spec.Template.Spec.Volumes[0]
	if volume.PersistentVolumeClaim.ClaimName != claim.Name || c.VolumeMounts[0].Name != volume.Name || after(c.Args, "--dir") != c.VolumeMounts[0].MountPath {
		t.Errorf("%+v, %+v, %v", volume, c.VolumeMounts, c.Args)
	}
}

func TestPodsHaveNoPrivilegesAndTheTokenFromASecret(t *testing.T) {
	for _, name := range []string{"Job claimbench-contender", "Job claimbench-coordinator"} {
		job := find[*batchv1.Job](t, name)
		pod, c := job.Spec.Template.Spec, container(t, job)
		if s := pod.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *pod.AutomountServiceAccountToken {
			t.Errorf("%s: %+v", name, s)
		}
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("%s: %+v", name, s)
		}
		i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "CLAIMBENCH_TOKEN" })
		if i < 0 || c.Env[i].Value != "" || c.Env[i].ValueFrom.SecretKeyRef.Name != "claimbench" {
			t.Errorf("%s: %+v", name, c.Env)
		}
	}
}
