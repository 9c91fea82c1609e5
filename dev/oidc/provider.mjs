// A certified OpenID Connect provider for the tests of the login, on loopback:
//
//   node provider.mjs MODULES PORT REDIRECT_URI CLIENT_SECRET
//
// MODULES is the folder with its packages (dev/scripts/npm.sh dev/oidc). It prints one line
// when it is ready, and ends with its standard input. People log in by any password.
import path from "node:path";
import { pathToFileURL } from "node:url";

const [modules, port, redirect, secret] = process.argv.slice(2);
const { Provider } = await import(pathToFileURL(path.join(modules, "oidc-provider", "lib", "index.js")).href);

const people = {
  ada: { email: "ada@example.com", email_verified: true, preferred_username: "ada", groups: ["devs", "others"] },
  eve: { email: "eve@example.com", email_verified: true, preferred_username: "eve", groups: ["others"] },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "berth", client_secret: secret, redirect_uris: [redirect] }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["preferred_username", "groups"] },
  findAccount: (_, id) => (people[id] ? { accountId: id, claims: () => ({ sub: id, ...people[id] }) } : undefined),
  cookies: { keys: ["of a test"] },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
process.stdin.on("end", () => process.exit(0)).resume();
