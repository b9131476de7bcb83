#include <dlfcn.h>
#include <stdio.h>
int main(void) { for (int i = 0; i < 300; i++) { void *h = dlopen("./libplug.so", RTLD_NOW); if (!h) { puts(dlerror()); return 1; }
 int (*p)(void) = (int (*)(void))dlsym(h, "plug"); if (p() != 7) return 2; dlclose(h); } puts("fine"); return 0; }
