// The only place that puts HTML into a page: what the sanitizer made of it, as a trusted type.
import createSanitizer from "dompurify";
import { useMemo } from "react";

const sanitizer = createSanitizer(window);

// What a page of text needs. Nothing that loads, runs, submits or styles.
const tags =
  "h1 h2 h3 h4 h5 h6 p br hr a b strong i em s del sub sup code pre kbd blockquote ul ol li dl dt dd table thead tbody tr th td div span input details summary".split(
    " ",
  );
const attributes = "href title align start open colspan rowspan type checked disabled data-widget".split(" ");

sanitizer.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("rel", "noopener noreferrer nofollow");
    node.setAttribute("target", "_blank");
  }
  // A task list has boxes that nobody can tick; any other input is a form.
  if (node.tagName === "INPUT" && (node.getAttribute("type") !== "checkbox" || !node.hasAttribute("disabled"))) node.remove();
});

/** HTML of a vendor, sanitized again although the API did. Load it lazily: it brings the sanitizer. */
export default function Html({ children, className }: { children: string; className?: string }) {
  const html = useMemo(
    () =>
      sanitizer.sanitize(children, {
        ALLOWED_TAGS: tags,
        ALLOWED_ATTR: attributes,
        ALLOW_DATA_ATTR: false,
        ALLOW_ARIA_ATTR: false,
        ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|#)/i,
        RETURN_TRUSTED_TYPE: true,
      }),
    [children],
  );
  return <div className={className} dangerouslySetInnerHTML={{ __html: html as unknown as string }} />;
}
