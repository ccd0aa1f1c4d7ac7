//! The default name of a container and the default tag of its image, which a pass sets.

/// Longest DNS label, in bytes.
const LABEL_BYTES: usize = 63;

/// Returns the name of the container of `image` in the workload `name`: the same name if that is a DNS label, else the
/// nearest label to it. It must be unique only within its pod.
///
/// Source: Kubernetes API reference, `Container.name`.
pub fn container_name(name: &str) -> String {
    let mut label = name.replace('.', "-");
    label.truncate(label.floor_char_boundary(LABEL_BYTES));
    label.truncate(label.trim_end_matches('-').len());
    label
}

/// Returns the image with the tag, unless it has a tag or a digest already. An empty tag is ignored.
pub fn tagged_image(image: &str, tag: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if tag.is_empty() || image.is_empty() || name.contains([':', '@']) {
        return image.to_owned();
    }
    format!("{image}:{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_the_name_of_its_workload_as_far_as_a_label_can() {
        assert_eq!(container_name("shop-web"), "shop-web");
        assert_eq!(container_name("shop.web"), "shop-web");
        assert_eq!(
            container_name(&format!("{}.web", "a".repeat(62))),
            "a".repeat(62)
        );
    }

    #[test]
    fn a_tag_is_put_on_an_image_that_has_none() {
        for (image, tag, whole) in [
            ("redis", "8", "redis:8"),
            ("registry:5000/redis", "8", "registry:5000/redis:8"),
            ("redis:7", "8", "redis:7"),
            ("redis@sha256:00", "8", "redis@sha256:00"),
            ("redis", "", "redis"),
        ] {
            assert_eq!(tagged_image(image, tag), whole);
        }
    }
}
