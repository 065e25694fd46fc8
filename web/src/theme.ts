// Light or dark: as the system says, unless the user chose.

import { computed, effect, signal } from "@preact/signals";

type Choice = "" | "light" | "dark";
const KEY = "podium-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const prefersDark = signal(system.matches);
system.addEventListener("change", () => {
  prefersDark.value = system.matches;
});

const choice = signal<Choice>((localStorage.getItem(KEY) as Choice) ?? "");
export const theme = computed(() => choice.value || (prefersDark.value ? "dark" : "light"));

export function toggle(): void {
  choice.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, choice.value);
}

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
