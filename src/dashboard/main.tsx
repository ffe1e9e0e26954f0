import { render } from "preact";
import "./style/tokens.css";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import "./style/pages.css";
import { App } from "./shell/app.tsx";

const root = document.getElementById("daybook");
if (root !== null) render(<App />, root);
