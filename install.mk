# make install / make uninstall: PREFIX (/usr/local), DESTDIR, and the directories below.

PREFIX     ?= /usr/local
DESTDIR    ?=
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
MANDIR     ?= $(PREFIX)/share/man
INSTALL    ?= install
VERSION    := $(shell sed -n 's/^.define GORT_VERSION "\(.*\)"/\1/p' include/gort.h)
SONAME     := libgort.so.$(firstword $(subst ., ,$(VERSION)))

MANPAGES   := $(wildcard man/*.[1-9])
# Built where their parts are present, and installed where they were built.
TOOLS       = $(wildcard $(OUT)/bin/*)
HOOK        = $(wildcard $(OUT)/libgort-hook.so)

.PHONY: install uninstall
install: all
	$(INSTALL) -d '$(DESTDIR)$(INCLUDEDIR)' '$(DESTDIR)$(LIBDIR)/pkgconfig'
	$(INSTALL) -m 644 include/gort.h '$(DESTDIR)$(INCLUDEDIR)/gort.h'
	$(INSTALL) -m 644 $(OUT)/libgort.a '$(DESTDIR)$(LIBDIR)/libgort.a'
	$(INSTALL) -m 755 $(OUT)/libgort.so '$(DESTDIR)$(LIBDIR)/libgort.so.$(VERSION)'
	ln -sf libgort.so.$(VERSION) '$(DESTDIR)$(LIBDIR)/$(SONAME)'
	ln -sf $(SONAME) '$(DESTDIR)$(LIBDIR)/libgort.so'
	printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$(INCLUDEDIR)' 'libdir=$(LIBDIR)' '' \
	    'Name: gort' 'Description: Goroutines, channels and blocking I/O for C' \
	    'Version: $(VERSION)' 'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lgort' \
	    'Libs.private: -lpthread' >'$(DESTDIR)$(LIBDIR)/pkgconfig/gort.pc'
	for page in $(MANPAGES); do \
	    section='$(DESTDIR)$(MANDIR)'/man$${page##*.}; \
	    $(INSTALL) -d "$$section" && $(INSTALL) -m 644 $$page "$$section/" || exit 1; \
	done
	$(if $(HOOK),$(INSTALL) -m 755 $(HOOK) '$(DESTDIR)$(LIBDIR)/libgort-hook.so')
	$(if $(TOOLS),$(INSTALL) -d '$(DESTDIR)$(BINDIR)' && $(INSTALL) -m 755 $(TOOLS) '$(DESTDIR)$(BINDIR)/')

uninstall:
	rm -f '$(DESTDIR)$(INCLUDEDIR)/gort.h' '$(DESTDIR)$(LIBDIR)/pkgconfig/gort.pc' \
	    '$(DESTDIR)$(LIBDIR)/libgort.a' '$(DESTDIR)$(LIBDIR)/libgort.so' '$(DESTDIR)$(LIBDIR)/$(SONAME)' \
	    '$(DESTDIR)$(LIBDIR)/libgort.so.$(VERSION)' '$(DESTDIR)$(LIBDIR)/libgort-hook.so'
	for page in $(MANPAGES); do rm -f '$(DESTDIR)$(MANDIR)'/man$${page##*.}/$${page##*/}; done
	$(foreach t,$(TOOLS),rm -f '$(DESTDIR)$(BINDIR)/$(notdir $(t))';)
