//! Empty lists, empty maps, nulls and fields that the API server fills in: whatever a template leaves empty, a second pass
//! writes nothing.

use anyhow::{Result, ensure};
use serde_json::{Map, Value, json};

use crate::scenario::{Objects, Scenario};
use crate::waters;

/// The number of objects of random shape.
const OBJECTS: usize = 80;

/// A kind with defaults at several levels, lists of each type, and a field that may be null.
const BOWL: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: bowls.GROUP
spec:
  group: GROUP
  scope: Namespaced
  names: { kind: Bowl, listKind: BowlList, plural: bowls, singular: bowl }
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                glaze: { type: string, default: clear }
                rim:
                  type: object
                  default: {}
                  properties: { width: { type: integer, default: 3 }, mark: { type: string } }
                marks: { type: array, items: { type: string }, x-kubernetes-list-type: set }
                parts:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [name]
                  items:
                    type: object
                    required: [name]
                    properties: { name: { type: string }, size: { type: integer, default: 1 } }
                layers: { type: array, items: { type: object, properties: { depth: { type: integer, default: 2 } } } }
                labels: { type: object, additionalProperties: { type: string } }
                note: { type: string, nullable: true }
                free: { type: object, x-kubernetes-preserve-unknown-fields: true }
";

const KATALOG: &str = r"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: GROUP, version: v1alpha1, kind: Pond, plural: ponds }
      operatorBox:
        onReconcile:
          custom: CHILDREN
";

/// A random number generator that returns the same numbers in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // Knuth's MMIX constants; only the high bits are random enough.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }

    /// Sets each field to one of its values, or leaves it out.
    fn fill(&mut self, object: &mut Map<String, Value>, fields: &[(&str, &[&str])]) -> Result<()> {
        for (field, values) in fields {
            let which = self.roll(values.len() + 2);
            let value = match which {
                0 => continue,
                1 => Value::Null,
                _ => serde_json::from_str(values[which - 2])?,
            };
            object.insert((*field).to_owned(), value);
        }
        Ok(())
    }

    fn map(&mut self, fields: &[(&str, &[&str])]) -> Result<Value> {
        let mut map = Map::new();
        self.fill(&mut map, fields)?;
        Ok(Value::Object(map))
    }

    fn metadata(&mut self, name: &str) -> Result<Value> {
        let mut metadata = Map::new();
        metadata.insert("name".to_owned(), json!(name));
        self.fill(
            &mut metadata,
            &[
                ("annotations", &["{}", r#"{"a":""}"#, r#"{"a":"b"}"#]),
                ("labels", &["{}", r#"{"shade":""}"#, r#"{"shade":"dark"}"#]),
            ],
        )?;
        Ok(Value::Object(metadata))
    }

    fn config_map(&mut self, name: &str) -> Result<Value> {
        let mut object = self.map(&[
            ("data", &["{}", r#"{"a":""}"#, r#"{"a":"b","c":"d"}"#]),
            ("binaryData", &["{}", r#"{"x":"AAEC"}"#]),
            ("immutable", &["false"]),
        ])?;
        self.head(&mut object, "v1", "ConfigMap", name)?;
        Ok(object)
    }

    fn service(&mut self, name: &str) -> Result<Value> {
        let mut spec = self.map(&[
            ("selector", &["{}", r#"{"app":"a"}"#]),
            ("externalIPs", &["[]"]),
            ("type", &[r#""ClusterIP""#]),
            ("sessionAffinity", &[r#""None""#]),
            ("publishNotReadyAddresses", &["false"]),
            ("loadBalancerSourceRanges", &["[]"]),
        ])?;
        let port = self.map(&[
            ("protocol", &[r#""TCP""#]),
            ("targetPort", &["80", r#""http""#]),
            ("appProtocol", &[r#""http""#]),
        ])?;
        let mut port = port;
        port["port"] = json!(80);
        port["name"] = json!("http");
        spec["ports"] = json!([port]);
        let mut object = json!({ "spec": spec });
        self.head(&mut object, "v1", "Service", name)?;
        Ok(object)
    }

    /// Returns the container of a Deployment.
    fn container(&mut self) -> Result<Value> {
        let mut container = self.map(&[
            (
                "env",
                &[
                    "[]",
                    r#"[{"name":"A","value":""}]"#,
                    r#"[{"name":"A"},{"name":"B","value":"b"}]"#,
                ],
            ),
            (
                "ports",
                &[
                    "[]",
                    r#"[{"containerPort":80}]"#,
                    r#"[{"containerPort":80,"protocol":"UDP","name":"u"}]"#,
                ],
            ),
            (
                "resources",
                &[
                    "{}",
                    r#"{"limits":{}}"#,
                    r#"{"limits":{"cpu":"0.5","memory":"1024Mi"}}"#,
                    r#"{"requests":{"cpu":"1000m"}}"#,
                ],
            ),
            ("args", &["[]", r#"[""]"#, r#"["a","b"]"#]),
            ("command", &["[]", r#"["sh"]"#]),
            ("volumeMounts", &["[]"]),
            ("envFrom", &["[]"]),
            (
                "securityContext",
                &[
                    "{}",
                    r#"{"runAsNonRoot":false}"#,
                    r#"{"capabilities":{}}"#,
                    r#"{"capabilities":{"drop":[]}}"#,
                ],
            ),
            (
                "livenessProbe",
                &[
                    r#"{"httpGet":{"path":"/","port":80}}"#,
                    r#"{"tcpSocket":{"port":80},"periodSeconds":10}"#,
                ],
            ),
            ("lifecycle", &["{}"]),
            ("stdin", &["false"]),
        ])?;
        container["name"] = json!("main");
        container["image"] = json!("registry.example/pump:1");
        Ok(container)
    }

    /// Returns the spec of the Pods of a Deployment.
    fn pod(&mut self) -> Result<Value> {
        let container = self.container()?;
        let mut pod = self.map(&[
            (
                "volumes",
                &[
                    "[]",
                    r#"[{"name":"v","emptyDir":{}}]"#,
                    r#"[{"name":"v","configMap":{"name":"c","items":[]}}]"#,
                ],
            ),
            ("nodeSelector", &["{}", r#"{"disk":"ssd"}"#]),
            ("tolerations", &["[]", r#"[{"operator":"Exists"}]"#]),
            ("imagePullSecrets", &["[]", r#"[{"name":"s"}]"#]),
            ("hostAliases", &["[]"]),
            (
                "securityContext",
                &["{}", r#"{"fsGroup":0}"#, r#"{"sysctls":[]}"#],
            ),
            ("affinity", &["{}", r#"{"nodeAffinity":{}}"#]),
            ("initContainers", &["[]"]),
            ("topologySpreadConstraints", &["[]"]),
            ("hostNetwork", &["false"]),
            ("restartPolicy", &[r#""Always""#]),
            ("terminationGracePeriodSeconds", &["0", "30"]),
        ])?;
        pod["containers"] = json!([container]);
        Ok(pod)
    }

    fn deployment(&mut self, name: &str) -> Result<Value> {
        let pod = self.pod()?;
        let mut spec = self.map(&[
            (
                "strategy",
                &[
                    "{}",
                    r#"{"type":"RollingUpdate"}"#,
                    r#"{"type":"RollingUpdate","rollingUpdate":{}}"#,
                    r#"{"type":"Recreate"}"#,
                ],
            ),
            ("minReadySeconds", &["0", "1"]),
            ("paused", &["false"]),
            ("revisionHistoryLimit", &["0", "10"]),
            ("progressDeadlineSeconds", &["600"]),
        ])?;
        spec["replicas"] = json!(0);
        spec["selector"] = json!({ "matchLabels": { "app": name } });
        spec["template"] = json!({ "metadata": { "labels": { "app": name } }, "spec": pod });
        let mut object = json!({ "spec": spec });
        self.head(&mut object, "apps/v1", "Deployment", name)?;
        Ok(object)
    }

    fn bowl(&mut self, name: &str) -> Result<Value> {
        let mut object = self.map(&[])?;
        let spec = self.map(&[
            ("glaze", &[r#""""#, r#""blue""#, r#""clear""#]),
            ("rim", &["{}", r#"{"width":3}"#, r#"{"mark":""}"#]),
            ("marks", &["[]", r#"["b","a"]"#]),
            (
                "parts",
                &[
                    "[]",
                    r#"[{"name":"foot"}]"#,
                    r#"[{"name":"lip","size":2},{"name":"foot"}]"#,
                ],
            ),
            ("layers", &["[]", "[{}]", r#"[{"depth":2},{}]"#]),
            ("labels", &["{}", r#"{"a":""}"#]),
            ("note", &[r#""""#, r#""n""#]),
            (
                "free",
                &["{}", r#"{"a":[],"b":{},"c":""}"#, r#"{"a":[{}],"n":1.5}"#],
            ),
        ])?;
        if self.roll(4) > 0 {
            object["spec"] = spec;
        }
        self.head(&mut object, "GROUP/v1", "Bowl", name)?;
        Ok(object)
    }

    fn head(&mut self, object: &mut Value, version: &str, kind: &str, name: &str) -> Result<()> {
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = self.metadata(name)?;
        Ok(())
    }

    fn objects(&mut self) -> Result<Vec<Value>> {
        let each = |number: usize| {
            let name = format!("shape-{number}");
            match number % 4 {
                0 => self.config_map(&name),
                1 => self.service(&name),
                2 => self.deployment(&name),
                _ => self.bowl(&name),
            }
        };
        (0..OBJECTS).map(each).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn whatever_is_left_empty_a_second_pass_writes_nothing() -> Result<()> {
    let children = serde_json::to_string(&Dice(5).objects()?)?;
    let katalog = KATALOG.replace("CHILDREN", &children);
    let mut scenario = Scenario::new("shapes").await?;
    scenario.grant(&katalog).await?;
    scenario.start().await?;
    scenario.install(&waters::crds()?).await?;
    scenario.install(BOWL).await?;
    scenario.apply(&katalog)?;
    scenario.katalog_is("waters", "True", "Running").await?;
    waters::pond(&scenario, "one", &json!({ "colour": "green" })).await?;
    let ponds = scenario.objects("ponds");
    ponds.until_ready("one").await?;
    let mut there = 0;
    let bowls = format!(
        "/apis/{}/v1/namespaces/{}/bowls",
        scenario.group, scenario.namespace
    );
    let mut all = vec![Objects::at(&scenario.client, &bowls)];
    all.extend(["configmaps", "services", "deployments"].map(|plural| scenario.objects(plural)));
    for objects in all {
        there += waters::managed(objects.list().await?).len();
    }
    ensure!(there == OBJECTS, "{there} of {OBJECTS} objects exist");

    // First a pass that an annotation requests, then the first pass after a restart, which has no caches.
    for again in [false, true] {
        let mark = Scenario::mark()?;
        if again {
            scenario.terminate()?;
            scenario.start().await?;
            // The counter of the new process starts at zero.
            scenario.until_passes("pond", 1.0).await?;
        } else {
            scenario.until_handled(&ponds, "one").await?;
        }
        let mut writes = scenario.writes_since(mark)?;
        if !again {
            writes = waters::without_repeats(writes);
        }
        writes.retain(|write| write.resource != "katalogs");
        ensure!(
            writes.is_empty(),
            "written again:\n{}",
            waters::lines(&writes)
        );
    }
    scenario.check_running()
}
