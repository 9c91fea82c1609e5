import js from "@eslint/js";
import reactHooks from "eslint-plugin-react-hooks";
import globals from "globals";
import tseslint from "typescript-eslint";

// What puts text into a page as HTML is allowed in one file, which sanitizes it.
const inert = [
  { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Only src/ui/Html.tsx puts HTML into a page, sanitized." },
  {
    selector: "AssignmentExpression[left.property.name=/^(inner|outer)HTML$/]",
    message: "Only src/ui/Html.tsx puts HTML into a page, sanitized.",
  },
];

// Code that is loaded late is waited for while the control plane is away.
const waited = {
  selector: "ImportExpression:not(CallExpression[callee.name=/^(late|patient)$/] ImportExpression)",
  message: "Load code by late() or patient() of src/late.ts.",
};

export default tseslint.config(
  { ignores: ["dist", "node_modules"] },
  js.configs.recommended,
  ...tseslint.configs.recommendedTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ["public/*.js", "scripts/*.js", "eslint.config.js"] },
        tsconfigRootDir: import.meta.dirname,
      },
      globals: globals.browser,
    },
  },
  reactHooks.configs.flat["recommended-latest"],
  {
    rules: {
      "no-restricted-syntax": ["error", ...inert, waited],
      "@typescript-eslint/only-throw-error": "off", // the router's redirects are thrown
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
      "@typescript-eslint/consistent-type-imports": "error",
    },
  },
  {
    files: ["**/*.js"],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: { ...globals.browser, ...globals.node } },
  },
  { files: ["src/ui/Html.tsx", "journeys/*.ts"], rules: { "no-restricted-syntax": "off" } },
);
