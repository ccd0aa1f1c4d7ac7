use serde_json::{Value, json};

use super::*;

/// Returns the stored parts of an object: its owner and the view.
fn kept(relation: Relation, object: &Value) -> (Option<String>, Node) {
    read(&relation.objects().kind, &Node::from(object))
}

/// Returns the value of `key` on a child of `kind`, computed from the views of `objects`, or from the child in it.
fn added(kind: &str, key: &str, objects: &[Value]) -> Option<Value> {
    let addition = Addition::find(key, &GroupKind::parse(kind)).unwrap();
    let views: Vec<Node> = match addition.source.relation() {
        None => objects.iter().map(Node::from).collect(),
        Some(relation) => objects.iter().map(|one| kept(relation, one).1).collect(),
    };
    (addition.shape)(&views).map(|value| value.to_json())
}

fn of(relation: Relation, object: &Value) -> Option<String> {
    kept(relation, object).0
}

#[test]
fn pods_show_their_containers_and_what_they_belong_to() {
    let mut pod = json!({
        "metadata": {
            "name": "web-7f-x2",
            "labels": { "orkestra.orkspace.io/workload": "w", "app": "web" },
            "ownerReferences": [{ "kind": "ReplicaSet", "uid": "rs", "controller": true }],
        },
        "spec": { "nodeName": "n1" },
        "status": {
            "phase": "Running", "podIP": "10.0.0.4",
            "conditions": [{ "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "True" }],
            "containerStatuses": [
                { "name": "x", "restartCount": 2, "state": { "waiting": { "reason": "CrashLoopBackOff" } } },
                { "name": "y", "restartCount": 1, "state": { "terminated": { "reason": "Error", "exitCode": 3 } } },
            ],
        },
    });
    assert_eq!(of(Relation::Pods, &pod).as_deref(), Some("w"));
    for (kind, key) in [("StatefulSet.apps", "_pods"), ("Job.batch", "_pods")] {
        assert_eq!(
            added(kind, key, std::slice::from_ref(&pod)),
            Some(json!([{
                "name": "web-7f-x2", "ip": "10.0.0.4", "phase": "Running", "ready": true, "node": "n1", "restartCount": 3,
                "containers": [
                    { "name": "x", "state": "Waiting", "reason": "CrashLoopBackOff" },
                    { "name": "y", "state": "Terminated", "reason": "Error", "exitCode": 3 },
                ],
            }]))
        );
    }
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!("web");
    assert_eq!(of(Relation::JobPods, &pod).as_deref(), Some("rs"));
    let stray = json!({ "metadata": { "name": "b" } });
    assert_eq!(of(Relation::Pods, &stray), None);
    assert_eq!(added("Deployment.apps", "_pods", &[]), Some(json!([])));
}

#[test]
fn warnings_come_latest_first_whoever_reports_them() {
    let by_kubelet = json!({
        "metadata": { "name": "web.1", "creationTimestamp": "2026-05-01T06:00:00Z" },
        "involvedObject": { "kind": "Job", "name": "web", "uid": "j" }, "type": "Warning",
        "reason": "FailedCreate", "message": "no such service account", "count": 4,
        "firstTimestamp": "2026-05-01T06:00:00Z", "lastTimestamp": "2026-05-01T06:10:00Z", "eventTime": null,
    });
    let by_scheduler = json!({
        "metadata": { "name": "web.2" },
        "involvedObject": { "kind": "Pod", "name": "web", "uid": "p" }, "type": "Warning",
        "reason": "FailedScheduling", "message": "0/1 nodes are available",
        "lastTimestamp": null, "eventTime": "2026-05-01T06:20:00.250000Z",
    });
    let again = json!({
        "reason": "FailedScheduling", "eventTime": "2026-05-01T06:00:00.000000Z",
        "series": { "count": 7, "lastObservedTime": "2026-05-01T06:15:00.000000Z" },
    });
    assert_eq!(of(Relation::Warnings, &by_kubelet).as_deref(), Some("j"));
    assert_eq!(
        added(
            "Anything.shop.example",
            "_warnings",
            &[by_kubelet, by_scheduler, again]
        ),
        Some(json!([
            {
                "reason": "FailedScheduling", "message": "0/1 nodes are available", "count": 1,
                "lastTimestamp": "2026-05-01T06:20:00.250000Z",
            },
            { "reason": "FailedScheduling", "message": "", "count": 7, "lastTimestamp": "2026-05-01T06:15:00.000000Z" },
            {
                "reason": "FailedCreate", "message": "no such service account", "count": 4,
                "lastTimestamp": "2026-05-01T06:10:00Z",
            },
        ]))
    );
}

#[test]
fn the_owner_is_the_controller() {
    let child = json!({ "metadata": { "ownerReferences": [
        { "kind": "Team", "name": "red", "uid": "t" },
        { "kind": "App", "name": "web", "uid": "a", "controller": true },
    ] } });
    assert_eq!(
        added("ReplicaSet.apps", "_owner", &[child]),
        Some(json!({ "name": "web", "kind": "App", "uid": "a" }))
    );
    assert_eq!(added("ReplicaSet.apps", "_owner", &[json!({})]), None);
}

#[test]
fn replica_sets_belong_to_the_deployment_that_controls_them() {
    let set = json!({
        "metadata": {
            "name": "a-7", "annotations": { "deployment.kubernetes.io/revision": "4" },
            "ownerReferences": [{ "uid": "d", "controller": true }],
        },
        "spec": { "template": { "spec": { "containers": [{ "image": "web:3" }] } } },
        "status": { "replicas": 2 },
    });
    assert_eq!(of(Relation::ReplicaSets, &set).as_deref(), Some("d"));
    assert_eq!(
        added("Deployment.apps", "_replicaSets", &[set]),
        Some(
            json!([{ "name": "a-7", "revision": "4", "replicas": 2, "readyReplicas": 0, "images": ["web:3"] }])
        )
    );
}

fn claim() -> Value {
    json!({
        "metadata": { "name": "data-db-0", "namespace": "east", "labels": { "orkestra.orkspace.io/workload": "w" } },
        "spec": { "storageClassName": "fast", "volumeName": "vol-1", "resources": { "requests": { "storage": "1Gi" } } },
        "status": { "phase": "Bound", "capacity": { "storage": "2Gi" } },
    })
}

#[test]
fn claims_and_volumes_name_each_other() {
    let seen = json!({
        "name": "data-db-0", "namespace": "east", "phase": "Bound", "capacity": "2Gi", "storageClass": "fast", "volume": "vol-1",
    });
    assert_eq!(of(Relation::Claims, &claim()).as_deref(), Some("w"));
    assert_eq!(
        added("StatefulSet.apps", "_pvcs", &[claim()]),
        Some(json!([seen]))
    );
    assert_eq!(added("PersistentVolume", "_pvc", &[claim()]), Some(seen));

    let mut volume = json!({
        "metadata": { "name": "vol-1" },
        "spec": {
            "capacity": { "storage": "2Gi" }, "storageClassName": "fast", "persistentVolumeReclaimPolicy": "Retain",
            "volumeMode": "Filesystem", "csi": { "driver": "disks.example" },
        },
        "status": { "phase": "Bound" },
    });
    let provisioner = |volume: &Value| {
        let seen = added("PersistentVolumeClaim", "_pv", std::slice::from_ref(volume)).unwrap();
        seen["provisioner"].clone()
    };
    assert_eq!(
        added(
            "PersistentVolumeClaim",
            "_pv",
            std::slice::from_ref(&volume)
        ),
        Some(json!({
            "name": "vol-1", "phase": "Bound", "capacity": "2Gi", "storageClass": "fast", "reclaimPolicy": "Retain",
            "volumeMode": "Filesystem", "provisioner": "disks.example",
        }))
    );
    volume["metadata"]["annotations"] =
        json!({ "pv.kubernetes.io/provisioned-by": "maker.example" });
    assert_eq!(provisioner(&volume), "maker.example");
}

#[test]
fn a_claim_shows_its_class() {
    let class = json!({
        "metadata": { "name": "fast" }, "provisioner": "disks.example", "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true, "parameters": { "secret": "x" },
    });
    assert_eq!(
        added("PersistentVolumeClaim", "_storageClass", &[class]),
        Some(json!({
            "name": "fast", "provisioner": "disks.example", "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
        }))
    );
}

#[test]
fn a_service_shows_its_addresses_and_the_pods_behind_them() {
    let slice = |address: &str, ports: Value| {
        json!({
            "metadata": { "name": "s-x", "namespace": "east", "labels": { "kubernetes.io/service-name": "s" } },
            "endpoints": [
                {
                    "addresses": [address], "conditions": { "ready": false }, "nodeName": "n1",
                    "targetRef": { "kind": "Pod", "name": "web-a", "uid": "p" },
                },
                { "addresses": ["10.0.0.5"] },
            ],
            "ports": ports,
        })
    };
    let (four, six) = (
        slice("10.0.0.4", json!([{ "name": "http", "port": 80 }])),
        slice("fd00::4", json!([])),
    );
    assert_eq!(
        of(Relation::EndpointSlices, &four).as_deref(),
        Some("east/s")
    );
    assert_eq!(
        added("Service", "_endpoints", &[four.clone(), six.clone()]),
        Some(json!([
            { "ip": "10.0.0.4", "port": 80, "ready": false },
            { "ip": "10.0.0.5", "port": 80, "ready": true },
            { "ip": "fd00::4", "ready": false },
            { "ip": "10.0.0.5", "ready": true },
        ]))
    );
    assert_eq!(
        added("Service", "_backingPods", &[four, six]),
        Some(json!([{ "name": "web-a", "ip": "10.0.0.4", "ready": false, "node": "n1" }]))
    );
}

#[test]
fn a_pod_shows_where_its_node_is() {
    let node = json!({ "metadata": { "name": "n1", "labels": {
        "topology.kubernetes.io/zone": "north-a", "topology.kubernetes.io/region": "north",
        "node.kubernetes.io/instance-type": "large", "kubernetes.io/arch": "arm64",
    } } });
    assert_eq!(
        added("Pod", "_node", &[node]),
        Some(
            json!({ "name": "n1", "zone": "north-a", "region": "north", "instanceType": "large" })
        )
    );
    assert_eq!(added("Pod", "_node", &[]), None);
}

#[test]
fn an_autoscaler_shows_what_it_measures_and_scales() {
    let child = json!({
        "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" } },
        "status": { "currentMetrics": [
            {
                "type": "Resource",
                "resource": { "name": "cpu", "current": { "averageUtilization": 40, "averageValue": "200m" } },
            },
            { "type": "Pods", "pods": { "metric": { "name": "requests" }, "current": { "averageValue": "12" } } },
            { "type": "External", "external": { "metric": { "name": "queue" }, "current": { "value": "7" } } },
        ] },
    });
    let kind = "HorizontalPodAutoscaler.autoscaling";
    assert_eq!(
        added(kind, "_currentMetrics", std::slice::from_ref(&child)),
        Some(json!([
            { "type": "Resource", "name": "cpu", "averageUtilization": 40, "averageValue": "200m" },
            { "type": "Pods", "name": "requests", "averageValue": "12" },
            { "type": "External", "name": "queue", "value": "7" },
        ]))
    );
    assert_eq!(
        added(kind, "_scaleTarget", &[child]),
        Some(json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }))
    );
    assert_eq!(added(kind, "_scaleTarget", &[json!({})]), None);
    assert_eq!(
        added(kind, "_currentMetrics", &[json!({})]),
        Some(json!([]))
    );
}

#[test]
fn a_cron_job_shows_its_jobs() {
    let job = |name: &str, created: &str, status: Value| {
        json!({
            "metadata": {
                "name": name, "creationTimestamp": created, "ownerReferences": [{ "uid": "c", "controller": true }],
            },
            "status": status,
        })
    };
    let ended = |end: &str| json!([{ "type": end, "status": "True" }]);
    let jobs = [
        job(
            "b-1",
            "2026-05-01T01:00:00Z",
            json!({ "succeeded": 1, "conditions": ended("Complete"), "completionTime": "2026-05-01T01:00:09Z" }),
        ),
        job(
            "b-2",
            "2026-05-01T02:00:00Z",
            json!({ "failed": 4, "conditions": ended("Failed") }),
        ),
        job(
            "b-3",
            "2026-05-01T03:00:00Z",
            json!({ "active": 1, "startTime": "2026-05-01T03:00:01Z" }),
        ),
    ];
    assert_eq!(of(Relation::Jobs, &jobs[0]).as_deref(), Some("c"));
    let running = json!({
        "name": "b-3", "phase": "Active", "active": 1, "succeeded": 0, "failed": 0, "createdAt": "2026-05-01T03:00:00Z",
        "startTime": "2026-05-01T03:00:01Z", "completionTime": "",
    });
    assert_eq!(
        added("CronJob.batch", "_activeJobs", &jobs),
        Some(json!([running]))
    );
    assert_eq!(added("CronJob.batch", "_lastJob", &jobs), Some(running));
    let last = added("CronJob.batch", "_lastSuccessfulJob", &jobs).unwrap();
    assert_eq!(last["name"], "b-1");
    assert_eq!(added("CronJob.batch", "_lastJob", &[]), None);
}

#[test]
fn an_ingress_shows_its_addresses_and_names_of_secrets() {
    let child = json!({
        "spec": { "tls": [
            { "hosts": ["a.example"], "secretName": "web-tls" }, { "hosts": ["b.example"] }, { "secretName": "web-tls" },
        ] },
        "status": { "loadBalancer": { "ingress": [{ "ip": "198.51.100.9" }, { "hostname": "lb.example" }] } },
    });
    let kind = "Ingress.networking.k8s.io";
    assert_eq!(
        added(kind, "_loadBalancerIPs", std::slice::from_ref(&child)),
        Some(json!(["198.51.100.9", "lb.example"]))
    );
    assert_eq!(
        added(kind, "_tlsSecrets", &[child]),
        Some(json!(["web-tls"]))
    );
}

#[test]
fn the_table_is_whole() {
    for target in EnrichTarget::ALL {
        let word = serde_json::to_value(target).unwrap();
        assert_eq!(word, target.word());
        assert!(target.additions().count() > 0, "{target:?}");
    }
    for addition in ADDITIONS {
        assert!(addition.key.starts_with('_'), "{}", addition.key);
        // A key has one source per kind.
        for (group, kind) in addition.on {
            let kind = GroupKind {
                group: (*group).into(),
                kind: (*kind).into(),
            };
            let all = ADDITIONS.iter();
            let same = all.filter(|other| other.key == addition.key && other.is_of(&kind));
            assert_eq!(same.count(), 1, "{} of {kind}", addition.key);
        }
        if let Some(relation) = addition.source.relation() {
            let is_field = matches!(addition.source, EnrichSource::Field(..));
            assert_eq!(relation.is_by_name(), is_field, "{relation:?}");
        }
    }
}
