//! Selects the charts to render and their values: aliases, conditions, tags, imports.
//!
//! Source: helm's `pkg/chart/v2/util/dependencies.go`.

use std::rc::Rc;

use orkestra_template::go::{parse_version, satisfies};

use crate::chart::Chart;
use crate::error::Error;
use crate::metadata::{Dependency, Metadata};
use crate::value::{Elem, Entries, Table, Value};
use crate::values::{
    as_table, coalesce_globals, coalesce_tables, coalesce_values, deep_copy, table_at, value_at,
};

/// The maximum number of charts. No human writes more, but aliases multiply them.
const MOST_CHARTS: usize = 500;

/// A chart that is rendered.
pub(crate) struct Member<'c> {
    pub(crate) chart: &'c Chart,
    /// Its metadata, with its alias as the name.
    pub(crate) metadata: Metadata,
    /// Its default values, including the imported ones.
    pub(crate) defaults: Rc<Table>,
    pub(crate) dependencies: Vec<Member<'c>>,
}

impl<'c> Member<'c> {
    /// Returns the chart with all of its dependencies.
    pub(crate) fn of(chart: &'c Chart) -> Member<'c> {
        Member {
            chart,
            metadata: chart.metadata.clone(),
            defaults: as_table(&Value::from_node(&chart.values)).unwrap_or_default(),
            dependencies: chart.dependencies.iter().map(Member::of).collect(),
        }
    }

    /// Removes disabled charts, and imports values.
    ///
    /// # Errors
    /// The values of a dependency are not a map; there are too many charts.
    pub(crate) fn resolve(&mut self, values: &Rc<Table>) -> Result<(), Error> {
        let mut count = 0;
        self.enable(values, "", &mut count)?;
        self.import()
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn enable(&mut self, values: &Rc<Table>, path: &str, count: &mut usize) -> Result<(), Error> {
        *count += 1 + self.metadata.dependencies.len();
        if *count > MOST_CHARTS {
            let message = format!("more than {MOST_CHARTS} charts and dependencies");
            return Err(Error::file("Chart.yaml", message));
        }
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        let declared = |member: &Member<'_>| {
            let dependencies = self.metadata.dependencies.iter();
            let mut dependencies = dependencies.filter(|dependency| is_met(dependency, member));
            dependencies.next().is_some()
        };
        // Charts that `Chart.yaml` does not list are included unchanged; then those that it lists, under each alias.
        let mut taking_part: Vec<Member<'c>> = Vec::new();
        for member in &self.dependencies {
            if !declared(member) {
                taking_part.push(Member::of(member.chart));
            }
        }
        for dependency in &self.metadata.dependencies {
            let found = self
                .dependencies
                .iter()
                .find(|member| is_met(dependency, member));
            if let Some(found) = found {
                let mut member = Member::of(found.chart);
                dependency
                    .local_name()
                    .clone_into(&mut member.metadata.name);
                taking_part.push(member);
            }
        }
        self.dependencies = taking_part;
        let coalesced = self.coalesced(values, false)?;
        let disabled: Vec<String> = self
            .metadata
            .dependencies
            .iter()
            .filter(|dependency| !is_enabled(dependency, &coalesced, path))
            .map(|dependency| dependency.local_name().to_owned())
            .collect();
        self.dependencies
            .retain(|member| !disabled.iter().any(|name| name == member.name()));
        self.metadata
            .dependencies
            .retain(|dependency| !disabled.iter().any(|name| name == dependency.local_name()));
        for member in &mut self.dependencies {
            let path = format!("{path}{}.", member.name());
            member.enable(&coalesced, &path, count)?;
        }
        Ok(())
    }

    /// Puts the values imported from dependencies below the default values, starting with the innermost chart.
    fn import(&mut self) -> Result<(), Error> {
        for member in &mut self.dependencies {
            member.import()?;
        }
        if self.metadata.dependencies.is_empty() {
            return Ok(());
        }
        let coalesced = self.coalesced(&Rc::default(), true)?;
        let imported: Rc<Table> = Rc::default();
        for dependency in &self.metadata.dependencies {
            for import in &dependency.imports {
                let path = format!("{}.{}", dependency.local_name(), import.child);
                let Some(table) = table_at(&coalesced, &path) else {
                    continue;
                };
                let placed = match &import.parent[..] {
                    "." => table,
                    parent => parent.rsplit('.').fold(table, |inner, key| {
                        let entry = (Rc::from(key), Value::Map(inner, Elem::Any));
                        Table::new(Entries::from([entry]))
                    }),
                };
                coalesce_tables(&imported, &placed, true);
            }
        }
        let defaults = deep_copy(&coalesced);
        coalesce_tables(&defaults, &imported, true);
        self.defaults = defaults;
        Ok(())
    }

    /// Returns the values for rendering the chart, with those of its dependencies below their names.
    ///
    /// # Errors
    /// The values of a dependency are not a map.
    pub(crate) fn coalesced(&self, given: &Rc<Table>, merge: bool) -> Result<Rc<Table>, Error> {
        let values = deep_copy(given);
        self.coalesce(&values, merge)?;
        Ok(values)
    }

    fn coalesce(&self, values: &Rc<Table>, merge: bool) -> Result<(), Error> {
        let is_chart = |key: &str| self.dependencies.iter().any(|member| member.name() == key);
        coalesce_values(values, &self.defaults, is_chart, merge);
        for member in &self.dependencies {
            let known = values.borrow().get(member.name()).cloned();
            let own = match known {
                Some(Value::Map(own, _)) => own,
                None => {
                    let own: Rc<Table> = Rc::default();
                    let entry = Value::Map(Rc::clone(&own), Elem::Any);
                    values.borrow_mut().insert(member.name().into(), entry);
                    own
                }
                Some(other) => {
                    let (name, found) = (member.name(), other.kind());
                    let message =
                        format!("values of the dependency `{name}` are a map, not a {found}");
                    return Err(Error::Values(message));
                }
            };
            coalesce_globals(&own, values);
            member.coalesce(&own, merge)?;
        }
        Ok(())
    }
}

fn is_met(dependency: &Dependency, member: &Member<'_>) -> bool {
    let version = parse_version(&member.chart.metadata.version);
    let fits = version.and_then(|version| satisfies(&dependency.version, &version));
    member.chart.metadata.name == dependency.name && fits == Some(true)
}

/// True if tags and conditions enable a dependency. A condition overrides tags.
fn is_enabled(dependency: &Dependency, values: &Rc<Table>, path: &str) -> bool {
    let conditions = dependency
        .condition
        .trim()
        .split(',')
        .filter(|c| !c.is_empty());
    let mut flags =
        conditions.filter_map(
            |condition| match value_at(values, &format!("{path}{condition}")) {
                Some(Value::Bool(flag)) => Some(flag),
                _ => None,
            },
        );
    if let Some(flag) = flags.next() {
        return flag;
    }
    let Some(tags) = table_at(values, "tags") else {
        return true;
    };
    let tags = tags.borrow();
    let flags = dependency
        .tags
        .iter()
        .filter_map(|tag| match tags.get(&**tag) {
            Some(Value::Bool(flag)) => Some(*flag),
            _ => None,
        });
    let flags: Vec<bool> = flags.collect();
    flags.is_empty() || flags.contains(&true)
}
