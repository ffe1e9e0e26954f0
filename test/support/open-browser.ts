// A real Chromium for tests of the dashboard: Debian's where it is installed, else one that npm brings for servers.
import { existsSync } from "node:fs";
import { chromium, type Browser } from "playwright-core";

const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

// Nothing of the browser's own speaks to the network.
const quiet = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Undefined where no Chromium can be had; the reason is printed. */
export async function openBrowser(): Promise<Browser | undefined> {
  const found = installed.find((path) => existsSync(path));
  try {
    if (found !== undefined) return await chromium.launch({ executablePath: found, args: quiet });
    const { default: packed } = await import("@sparticuz/chromium");
    return await chromium.launch({ executablePath: await packed.executablePath(), args: [...packed.args, ...quiet] });
  } catch (error) {
    console.log(`No Chromium can be started here, so the tests of the dashboard are not run: ${String(error)}`);
    return undefined;
  }
}
