export type { components, operations, paths } from "./api.gen.js";
export { Berth, fromEnvironment, type Item, type ListInit, type ListPath, ok, type Schemas, type WaitInit } from "./client.js";
export { NotBerth, Problem, type ProblemItem, TooLarge, Unreachable } from "./errors.js";
export type { Options } from "./send.js";
