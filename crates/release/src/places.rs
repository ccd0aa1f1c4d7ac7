//! Where a release is published, in the files of the release. Those of the repository have no addresses.

use orkestra_registry::Digest;

/// The image of manifests of a release that publishes none: the domain never exists.
///
/// Source: RFC 2606, section 2.
const NO_IMAGE: &str = "registry.invalid/orkestra";

/// The places of a release.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Repository of the image.
    pub image: Option<&'a str>,
    /// The digest of the image.
    pub digest: Digest,
    /// Address of the folder with the folders of releases.
    pub releases: Option<&'a str>,
    /// Address of the documentation.
    pub docs: Option<&'a str>,
}

impl Places<'_> {
    /// Returns the image of the manifests, by digest.
    pub fn reference(&self) -> String {
        match self.image {
            Some(image) => format!("{image}@{}", self.digest),
            None => NO_IMAGE.to_owned(),
        }
    }

    /// Returns the installer that downloads from the folder of releases.
    pub fn installer(&self, script: &[u8]) -> Vec<u8> {
        let Some(releases) = self.releases else {
            return script.to_vec();
        };
        let script = String::from_utf8_lossy(script);
        let line = format!("\nreleases='{}'\n", releases.trim_end_matches('/'));
        script.replacen("\nreleases=\n", &line, 1).into_bytes()
    }

    /// Returns another content for a file of the chart; none if it stays.
    pub fn of_chart(&self, path: &str, content: &[u8]) -> Option<Vec<u8>> {
        let text = String::from_utf8_lossy(content);
        match path {
            "values.yaml" => {
                let image = self.image?;
                let text = text.replacen(
                    "\n  repository: \"\"\n",
                    &format!("\n  repository: \"{image}\"\n"),
                    1,
                );
                let digest = format!("\n  digest: \"{}\"\n", self.digest);
                Some(text.replacen("\n  digest: \"\"\n", &digest, 1).into_bytes())
            }
            "Chart.yaml" => {
                let docs = self.docs?;
                Some(format!("{}\nhome: {docs:?}\n", text.trim_end()).into_bytes())
            }
            _ => None,
        }
    }
}
