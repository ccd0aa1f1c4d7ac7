//! The rows of operators in the status of their Katalogs, as they were written last: what an operator that starts, or takes over
//! the leadership, inherits from its predecessor.

use std::collections::BTreeMap;

use orkestra_language::api::OperatorStatus as Row;
use orkestra_plan::{KatalogRef, OperatorPlan};
use parking_lot::Mutex;

/// The rows of each Katalog.
#[derive(Debug, Default)]
pub struct WrittenRows(Mutex<BTreeMap<KatalogRef, Vec<Row>>>);

impl WrittenRows {
    /// Sets the rows of a Katalog.
    pub fn set(&self, katalog: &KatalogRef, rows: &[Row]) {
        let mut all = self.0.lock();
        match all.get_mut(katalog) {
            Some(known) if *known == rows => {}
            Some(known) => rows.clone_into(known),
            None => drop(all.insert(katalog.clone(), rows.to_vec())),
        }
    }

    /// Removes a deleted Katalog.
    pub fn forget(&self, katalog: &KatalogRef) {
        self.0.lock().remove(katalog);
    }

    /// Returns the row of an operator.
    pub(crate) fn of(&self, plan: &OperatorPlan) -> Option<Row> {
        let all = self.0.lock();
        let rows = all.get(&plan.katalog)?;
        rows.iter().find(|row| row.name == plan.name).cloned()
    }
}
