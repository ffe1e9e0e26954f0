import assert from "node:assert/strict";
import { test } from "node:test";
import { checkName, checkTenant } from "../../src/core/name.ts";

test("a name is any visible text of up to 200 bytes", () => {
  for (const name of ["send-mail", "Büro für Ämter", "🐎", "a b", "é".repeat(100), "x".repeat(200)]) {
    assert.equal(checkName(name, "queue"), name);
  }
});

test("a name that cannot be seen, told apart or kept is refused with the reason", () => {
  const cases: [unknown, RegExp][] = [
    ["", /^queue "" is empty/],
    [" mail", /^queue " mail" begins or ends with white space/],
    ["mail\u00a0", /begins or ends with white space/],
    ["a\nb", /has a control character/],
    ["a\0b", /has a control character/],
    ["a\u0085b", /has a control character/],
    ["a\ud800", /has a lone surrogate/],
    ["é".repeat(101), /is 202 bytes long; at most 200 are allowed/],
    [5, /^queue 5 must be a string/],
    [null, /^queue null must be a string/],
    [{}, /^queue an object must be a string/],
  ];
  for (const [value, message] of cases) {
    assert.throws(() => checkName(value as string, "queue"), { code: "invalid", message });
  }
});

test("a tenant is letters, digits and . _ - :", () => {
  for (const tenant of ["default", "acme:eu-1", "A.b_c", "x".repeat(200)]) assert.equal(checkTenant(tenant), tenant);
  for (const tenant of ["", "a b", "é", "a/b", "a\n", "x".repeat(201), 5, undefined]) {
    assert.throws(() => checkTenant(tenant as string), {
      code: "invalid",
      message: /^tenant .* must be 1 to 200 letters/,
    });
  }
});
