// Starts the page.

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import { App } from "./app";
import { follow as followCluster } from "./cluster";
import { follow as followAddress } from "./routing";
import "./style.css";

followAddress();
followCluster();
const place = document.getElementById("app");
if (place) render(<App />, place);
