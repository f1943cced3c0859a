import { MantineProvider } from "@mantine/core";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { Gate } from "../access/Gate";
import { LiveProvider } from "../api/LiveProvider";
import { colorScheme, theme } from "../ui/theme";
import { ToastProvider } from "../ui/toast";
import type { createAppRouter } from "./router";

export function App({ cache, router }: { cache: QueryClient; router: ReturnType<typeof createAppRouter> }) {
  return (
    <MantineProvider theme={theme} colorSchemeManager={colorScheme} defaultColorScheme="auto" withCssVariables={false}>
      <QueryClientProvider client={cache}>
        <Gate>
          <LiveProvider>
            <ToastProvider>
              <RouterProvider router={router} />
            </ToastProvider>
          </LiveProvider>
        </Gate>
      </QueryClientProvider>
    </MantineProvider>
  );
}
