// Shows openapi.json with Redoc. What it loads comes from the server of this
// page; the page's Content-Security-Policy allows nothing else.
const at = document.getElementById("reference");
window.Redoc.init("openapi.json", {
  nonce: at.dataset.nonce,
  disableSearch: false,
  hideDownloadButton: false,
  jsonSampleExpandLevel: 3,
  pathInMiddlePanel: true,
  requiredPropsFirst: true,
  sortTagsAlphabetically: false,
  theme: {
    colors: { primary: { main: "#3e63dd" } },
    typography: {
      fontFamily: "system-ui, sans-serif",
      fontSize: "14px",
      headings: { fontFamily: "system-ui, sans-serif", fontWeight: "600" },
      code: { fontFamily: "ui-monospace, monospace", fontSize: "12.5px" },
    },
    sidebar: { width: "280px" },
  },
}, at);
