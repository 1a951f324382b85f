package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"math/rand"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// readiness prints random workloads, one per line, with the status that kstatus computes for each.
func readiness(out *bufio.Writer) {
	random := rand.New(rand.NewSource(1))
	for i := 0; i < 600; i++ {
		object := workload(random)
		result, err := status.Compute(&unstructured.Unstructured{Object: object})
		if err != nil {
			log.Fatal(err)
		}
		line, err := json.Marshal(object)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(out, "%s %s\n", result.Status, line)
	}
}

type fields = map[string]any

// workload makes an object whose fields are near those of a ready one.
func workload(random *rand.Rand) fields {
	wanted := int64(random.Intn(4))
	near := func(into fields, names ...string) {
		for _, name := range names {
			switch random.Intn(9) {
			case 0:
				into[name] = max(0, wanted-1)
			case 1:
				into[name] = wanted + 1
			case 2:
				if name == "desiredNumberScheduled" || name == "currentNumberScheduled" || name == "numberReady" {
					into[name] = wanted
				}
			default:
				into[name] = wanted
			}
		}
	}
	metadata := fields{"name": "one", "generation": int64(2)}
	spec, current := fields{"selector": fields{}, "template": fields{}}, fields{}
	if random.Intn(12) == 0 {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	observed := func() {
		if random.Intn(10) > 0 {
			current["observedGeneration"] = int64(2 - random.Intn(6)/5)
		}
	}
	conditions := func(kinds ...string) {
		var all []any
		for _, kind := range kinds {
			value := []string{"True", "True", "True", "False", "Unknown"}[random.Intn(5)]
			reason := []string{"NewReplicaSetAvailable", "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"}[random.Intn(4)]
			if random.Intn(5) > 0 {
				all = append(all, fields{"type": kind, "status": value, "reason": reason, "message": "text"})
			}
		}
		if all != nil {
			current["conditions"] = all
		}
	}
	if random.Intn(8) > 0 {
		spec["replicas"] = wanted
	} else {
		wanted = 1
	}
	object := fields{"apiVersion": "apps/v1", "metadata": metadata, "spec": spec}
	switch random.Intn(5) {
	case 0:
		object["kind"] = "Deployment"
		switch random.Intn(3) {
		case 0:
			spec["progressDeadlineSeconds"] = int64(600)
		case 1:
			spec["progressDeadlineSeconds"] = int64(2147483647)
		}
		observed()
		near(current, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
		conditions("Progressing", "Available")
	case 1:
		object["kind"] = "StatefulSet"
		spec["serviceName"] = "one"
		switch random.Intn(6) {
		case 0:
			spec["updateStrategy"] = fields{"type": "OnDelete"}
		case 1:
			spec["updateStrategy"] = fields{"type": "RollingUpdate", "rollingUpdate": fields{"partition": int64(1)}}
		case 2:
			spec["updateStrategy"] = fields{"type": "RollingUpdate", "rollingUpdate": fields{"partition": int64(0)}}
		}
		observed()
		current["replicas"] = int64(0)
		near(current, "replicas", "readyReplicas", "currentReplicas", "updatedReplicas")
		current["currentRevision"], current["updateRevision"] = "a", []string{"a", "a", "b"}[random.Intn(3)]
	case 2:
		object["kind"] = "DaemonSet"
		delete(spec, "replicas")
		observed()
		near(current, "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "numberAvailable", "updatedNumberScheduled")
		current["numberMisscheduled"] = int64(0)
		for _, name := range []string{"desiredNumberScheduled", "currentNumberScheduled", "numberReady"} {
			if current[name] == nil {
				current[name] = wanted
			}
		}
	case 3:
		object["apiVersion"], object["kind"] = "batch/v1", "Job"
		spec = fields{"template": fields{}}
		object["spec"] = spec
		if random.Intn(3) > 0 {
			current["startTime"] = "2026-01-01T00:00:00Z"
		}
		if random.Intn(2) > 0 {
			conditions([]string{"Complete", "Failed", "Suspended", "FailureTarget"}[random.Intn(4)])
		}
	case 4:
		object["apiVersion"], object["kind"] = "v1", "PersistentVolumeClaim"
		object["spec"] = fields{}
		delete(metadata, "generation")
		current["phase"] = []string{"Bound", "Pending", "Lost"}[random.Intn(3)]
	}
	if random.Intn(15) > 0 {
		object["status"] = current
	}
	return object
}
