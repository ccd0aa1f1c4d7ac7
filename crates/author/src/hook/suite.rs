//! The rules of the contract, each as a case.

use std::{collections::BTreeMap, time::Instant};

use orkestra_engine::reconcile::{
    calls::{CallAnswer, CallRequest, CallTarget},
    hooks::{HookError, HookResponse, HookRule, contract::HookTrial},
    preview::Assumptions,
};
use orkestra_language::api::hook_contract::HookAnswer;
use orkestra_object::value::Node;
use orkestra_plan::OperatorPlan;
use orkestra_wasm::RunError;

use super::{Error, HookCase, HookOutcome, call::Caller, trial};

/// The rules, by their names in results.
const ANSWERS: &str = "answers a request";
const VALID: &str = "the answer is valid";
const MANAGED: &str = "children are of managed kinds";
const NAMESPACE: &str = "children are in the namespace of the custom resource";
const SAME: &str = "the same request has the same answer";
const SETTLES: &str = "the answer is stable once its children exist";
const FINALIZES: &str = "finalizing ends";
const BROKEN: &str = "a request that is not JSON is refused";
const COSTS: &str = "calls end within half of the timeout";
/// The most calls until a hook is finalized.
const MOST_FINALIZING: usize = 10;
/// A request that is not JSON.
const NOT_JSON: &str = "{\"apiVersion\": ";

/// A hook and the custom resource that it is asked about.
pub(crate) struct Suite<'a> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) hook: &'a str,
    pub(crate) assumed: Assumptions<'a>,
}

/// What a call in a pass led to.
struct Asked {
    request: CallRequest,
    answer: CallAnswer,
    judged: Result<HookResponse, HookError>,
}

impl Suite<'_> {
    /// Checks every rule.
    pub(crate) async fn run(&self, mut caller: Caller) -> Result<Vec<HookCase>, Error> {
        let mut cases = Vec::new();
        let mut done = |name, outcome, began: Instant| {
            cases.push(HookCase {
                name,
                outcome,
                took: began.elapsed(),
            });
        };
        let objects = self.objects()?;
        let before = trial(self.plan, self.hook, self.given(&objects, None))?;
        let finalize = before.finalize().map_err(Error::Hook)?;
        if before.sync().is_none() && finalize.is_none() {
            return Err(Error::Hook(not_called(self.hook)));
        }
        let began = Instant::now();
        let asked = ask(&before, &mut caller).await?;
        let rules = [
            (ANSWERS, HookRule::Answers),
            (VALID, HookRule::ValidAnswer),
            (MANAGED, HookRule::ManagedKinds),
            (NAMESPACE, HookRule::OwnNamespace),
        ];
        for (name, rule) in rules {
            done(name, kept(asked.as_ref(), rule), began);
        }
        let began = Instant::now();
        done(SAME, same(asked.as_ref(), &mut caller).await?, began);
        let began = Instant::now();
        let settled = self.settles(&objects, asked.as_ref(), &mut caller).await?;
        done(SETTLES, settled, began);
        let began = Instant::now();
        let finalized = self
            .finalizes(&objects, asked.as_ref(), &mut caller)
            .await?;
        done(FINALIZES, finalized, began);
        let began = Instant::now();
        let first = asked.as_ref().map(|asked| asked.request.clone());
        let request = first.or_else(|| Some(caller.aimed(finalize.as_ref()?, true)));
        let refused = match request {
            Some(request) => broken(&request, asked.is_some(), &mut caller).await?,
            None => HookOutcome::Skipped(not_called(self.hook)),
        };
        done(BROKEN, refused, began);
        done(COSTS, costs(&before, &caller), Instant::now());
        Ok(cases)
    }

    /// Returns the given objects; for a hook that is called when the children of the templates exist, with those.
    fn objects(&self) -> Result<Vec<Node>, Error> {
        let mut objects = self.assumed.children.to_vec();
        let first = trial(self.plan, self.hook, self.assumed.clone())?;
        if first.is_after() {
            add(&mut objects, first.objects());
        }
        Ok(objects)
    }

    /// Returns the assumptions with these objects, and with an answer of the hook.
    fn given<'s>(
        &'s self,
        objects: &'s [Node],
        calls: Option<&'s BTreeMap<String, Node>>,
    ) -> Assumptions<'s> {
        Assumptions {
            children: objects,
            calls: calls.unwrap_or(self.assumed.calls),
            ..self.assumed.clone()
        }
    }

    /// Returns the objects that exist once the answer is applied.
    fn applied(&self, objects: &[Node], answer: &CallAnswer) -> Result<Vec<Node>, Error> {
        let mut calls = self.assumed.calls.clone();
        let body = Node::object([("body", Node::from(&*answer.body))]);
        calls.insert(self.hook.to_owned(), body);
        let after = trial(self.plan, self.hook, self.given(objects, Some(&calls)))?;
        let mut all = objects.to_vec();
        add(&mut all, after.objects());
        Ok(all)
    }

    /// Checks that the answer stays the same once its children exist.
    async fn settles(
        &self,
        objects: &[Node],
        asked: Option<&Asked>,
        caller: &mut Caller,
    ) -> Result<HookOutcome, Error> {
        let Some(Asked {
            answer,
            judged: Ok(first),
            ..
        }) = asked
        else {
            return Ok(skipped());
        };
        let after = self.applied(objects, answer)?;
        let after = trial(self.plan, self.hook, self.given(&after, None))?;
        let Some(again) = ask(&after, caller).await? else {
            return Ok(HookOutcome::Skipped(
                "it is not called once they exist".to_owned(),
            ));
        };
        Ok(match again.judged {
            Ok(second) if second.children == first.children => HookOutcome::Passed(None),
            Ok(_) => HookOutcome::Failed(
                "asked with the children that it returned, it returns others: they would be written in every reconcile pass"
                    .to_owned(),
            ),
            Err(why) => HookOutcome::Failed(format!(
                "asked with the children that it returned: {}",
                why.message
            )),
        })
    }

    /// Asks until nothing is left to do; children that are not returned are gone at the next call.
    async fn finalizes(
        &self,
        objects: &[Node],
        asked: Option<&Asked>,
        caller: &mut Caller,
    ) -> Result<HookOutcome, Error> {
        let mut left = match asked {
            Some(Asked {
                answer,
                judged: Ok(_),
                ..
            }) => self.applied(objects, answer)?,
            _ => objects.to_vec(),
        };
        for calls in 1..=MOST_FINALIZING {
            let now = trial(self.plan, self.hook, self.given(&left, None))?;
            let Some(request) = now.finalize().map_err(Error::Hook)? else {
                let why = "it is not called while a custom resource is being deleted";
                return Ok(HookOutcome::Skipped(why.to_owned()));
            };
            let answer = caller.call(&caller.aimed(&request, true)).await?;
            match now.judge(&answer) {
                Ok(response) if response.finalized => {
                    let calls = if calls == 1 {
                        "1 call".to_owned()
                    } else {
                        format!("{calls} calls")
                    };
                    return Ok(HookOutcome::Passed(Some(format!("after {calls}"))));
                }
                Ok(response) => {
                    let keeps =
                        |object: &Node| !now.is_managed(object) || now.returns(&response, object);
                    let kept: Vec<Node> = left.iter().filter(|one| keeps(one)).cloned().collect();
                    left = kept;
                }
                Err(why) => return Ok(HookOutcome::Failed(why.message)),
            }
        }
        Ok(HookOutcome::Failed(format!(
            "it did not answer `finalized: true` within {MOST_FINALIZING} calls: the custom resource could never be deleted"
        )))
    }
}

/// Calls the hook as a pass does; none if a pass does not call it.
async fn ask(trial: &HookTrial<'_>, caller: &mut Caller) -> Result<Option<Asked>, Error> {
    let Some(request) = trial.sync() else {
        return Ok(None);
    };
    let request = caller.aimed(request, false);
    let answer = caller.call(&request).await?;
    let judged = trial.judge(&answer);
    Ok(Some(Asked {
        request,
        answer,
        judged,
    }))
}

/// Returns whether an answer keeps a rule: the first one that it breaks is known.
fn kept(asked: Option<&Asked>, rule: HookRule) -> HookOutcome {
    match asked.map(|asked| &asked.judged) {
        None => HookOutcome::Skipped("it is not called in a reconcile pass".to_owned()),
        Some(Err(why)) if why.rule == rule => HookOutcome::Failed(why.message.clone()),
        Some(Err(why)) if (why.rule as u8) < rule as u8 => skipped(),
        Some(_) => HookOutcome::Passed(None),
    }
}

fn skipped() -> HookOutcome {
    HookOutcome::Skipped("there is no valid answer".to_owned())
}

fn not_called(hook: &str) -> String {
    format!(
        "`{hook}` is not called for this custom resource: its conditions do not hold, or a call or hook before it has no response; \
         pass one with `--external`"
    )
}

/// Checks that the same request has the same answer.
async fn same(asked: Option<&Asked>, caller: &mut Caller) -> Result<HookOutcome, Error> {
    let Some(Asked {
        request, answer, ..
    }) = asked.filter(|asked| asked.judged.is_ok())
    else {
        return Ok(skipped());
    };
    let again = caller.call(request).await?;
    let read = |answer: &CallAnswer| serde_json::from_str::<serde_json::Value>(&answer.body).ok();
    let (first, second) = (read(answer), read(&again));
    Ok(if first == second {
        HookOutcome::Passed(None)
    } else if let Some(error) = again.error {
        HookOutcome::Failed(format!("the second call failed: {}", error.message))
    } else {
        HookOutcome::Failed(
            "two answers to one request differ: declare `cacheFor`, or pass what it depends on under `args`"
                .to_owned(),
        )
    })
}

/// Checks that a broken request gets an error, and that the next request gets an answer again.
async fn broken(
    request: &CallRequest,
    is_sync: bool,
    caller: &mut Caller,
) -> Result<HookOutcome, Error> {
    let mut wrong = request.clone();
    wrong.body = NOT_JSON.into();
    // A module without an answer has refused, unless it does not end.
    if let CallTarget::Module(Some(module)) = &wrong.target {
        let ended = module.run(NOT_JSON.into(), wrong.limits());
        return Ok(match ended {
            Ok(text) => of_text(&text),
            Err(why @ RunError::OutOfFuel { .. }) => HookOutcome::Failed(why.to_string()),
            Err(_) => HookOutcome::Passed(None),
        });
    }
    let answer = caller.call(&wrong).await?;
    let outcome = match (answer.status, answer.error) {
        (Some(_), Some(_)) => HookOutcome::Passed(None),
        (None, Some(error)) => HookOutcome::Failed(format!(
            "{}: answer with status 400, or with `error`",
            error.message
        )),
        (_, None) => of_text(&answer.body),
    };
    let again = if is_sync {
        caller.call(request).await?.error
    } else {
        None
    };
    Ok(match again {
        Some(error) => HookOutcome::Failed(format!("the next call failed: {}", error.message)),
        None => outcome,
    })
}

/// Judges an answer to a broken request.
fn of_text(text: &str) -> HookOutcome {
    let failed = HookAnswer::parse(text).map(|answer| answer.error.is_some());
    if failed == Ok(true) {
        HookOutcome::Passed(None)
    } else {
        HookOutcome::Failed(
            "it answers as if the request were valid: answer with `error`, with status 400, or exit with another status than 0"
                .to_owned(),
        )
    }
}

/// Judges the time and the size of all calls.
fn costs(trial: &HookTrial<'_>, caller: &Caller) -> HookOutcome {
    let timeout = trial.hook().timeout;
    let said = format!(
        "the longest of {} calls took {} ms, and the largest answer has {} bytes",
        caller.calls,
        caller.longest.as_millis(),
        caller.largest
    );
    if caller.longest > timeout / 2 {
        HookOutcome::Failed(format!(
            "{said}; the timeout is {} s",
            timeout.as_secs_f32()
        ))
    } else {
        HookOutcome::Passed(Some(said))
    }
}

/// Adds objects that are not there yet.
fn add(objects: &mut Vec<Node>, new: &[Node]) {
    let key = |object: &Node| {
        ["apiVersion", "kind"]
            .map(|field| {
                object
                    .get(field)
                    .map(Node::to_text)
                    .unwrap_or_default()
                    .into_owned()
            })
            .into_iter()
            .chain(
                ["namespace", "name"]
                    .map(|field| object.meta_text(field).unwrap_or_default().to_owned()),
            )
            .collect::<Vec<String>>()
    };
    for object in new {
        if !objects.iter().any(|known| key(known) == key(object)) {
            objects.push(object.clone());
        }
    }
}
