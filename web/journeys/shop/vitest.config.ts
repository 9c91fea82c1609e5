export { default } from "../full/vitest.config";
